import type { Form } from "../../base/form.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import { newId } from "../../base/id.ts";
import { ConflictError } from "../../database/database.ts";
import type { Sql } from "../../database/sql.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { GrantType } from "../../oauth/grant_type.ts";
import { appAt, type Target } from "../../oauth/resource.ts";
import { grantScope } from "../../oauth/scope.ts";
import type { User } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { insertAuditOfGrant, type NewAuditEntry } from "../../store/audit.ts";
import { revokeGrant } from "../../store/grant_end.ts";
import { type Grant, insertGrant, type NewGrant } from "../../store/grants.ts";
import { findResource } from "../../store/resources.ts";
import { readResource } from "./oauth_form.ts";

export type IssuingServices = Pick<Services, "database" | "tokens" | "revocations" | "now">;

/** A token response (RFC 6749 §5.1), after what it needs has been stored. */
type IssuedTokens = ReturnType<Services["tokens"]["makeTokens"]>["issued"];

/**
 * The exchange of one grant type: checks the form of an authenticated app and issues tokens. Throws
 * OAuthError; undefined if the user or the app has been disabled meanwhile.
 */
export type Exchange = (
  request: { readonly app: App; readonly form: Form; readonly request: HttpRequest },
  services: IssuingServices & Pick<Services, "accounts" | "issuer" | "passwordLogin">,
) => Promise<IssuedTokens | undefined>;

/** A grant that is to be stored. */
interface WantedGrant extends Pick<NewGrant, "user" | "scopes" | "decidedAtMs"> {
  readonly app: Pick<App, "id" | "grants" | "metadataUrl"> & Target;
  readonly type: GrantType | "login";
  /** The audit entry to store with the grant. */
  readonly audited?: NewAuditEntry;
  /** The statements of the password login, stored with the grant. */
  readonly uses?: readonly Sql[];
}

/**
 * Stores a new grant and returns its first tokens, with a refresh token if the app may use one.
 * Returns undefined and stores nothing if the user or the app has been disabled meanwhile, or the
 * one-time password has been used.
 */
export async function issueGrant(
  wanted: WantedGrant,
  { database, revocations, tokens, now }: IssuingServices,
): Promise<IssuedTokens | undefined> {
  const { app, user, type, scopes, audited, uses } = wanted;
  const nowMs = now();
  const id = newId("g", nowMs);
  const { issued, stored } = tokens.makeTokens({ id, user, scopes }, app, nowMs);
  const parties = { app: app.id, user, resource: app.resource?.id ?? null };
  const decidedAtMs = wanted.decidedAtMs ?? nowMs;
  const grant = { id, type, scopes, decidedAtMs, ...parties, ...stored };
  const isStored = await insertGrant(database, grant, audited, revocations, uses)
    .catch((error: unknown) => {
      if (error instanceof ConflictError) return false;
      throw error;
    });
  return isStored ? issued : undefined;
}

/**
 * Returns the scopes that a user may grant an app, by `grantScope`. Throws OAuthError
 * `invalid_scope` if no token can carry them, so that the user is not asked in vain.
 */
export function findGrantable(
  requested: readonly string[],
  app: WantedGrant["app"] & Pick<App, "scopes">,
  { id: user, scopes: owned }: User,
  { tokens, now }: Pick<Services, "tokens" | "now">,
): string[] {
  const scopes = grantScope({ requested, app: app.scopes, user: owned });
  const nowMs = now();
  tokens.makeTokens({ id: newId("g", nowMs), user, scopes }, app, nowMs);
  return scopes;
}

/**
 * Makes the next tokens of a grant, or the first tokens of a code. Returns them with their time and
 * scopes: the granted ones that app and user still have. Throws OAuthError `invalid_grant` if the
 * user or the resource has ended, so that the app authorizes again; `invalid_target` if the grant
 * is for another resource (RFC 8707 §2.2); `invalid_scope` if no scope is left.
 */
export async function renewTokens(
  granted: Pick<Grant, "id" | "user" | "scopes" | "resource">,
  { app, form }: Parameters<Exchange>[0],
  services: Parameters<Exchange>[1],
) {
  const { accounts, database, tokens, now } = services;
  const resource = granted.resource ? await findResource(database, granted.resource) : null;
  const user = granted.user === null ? null : await accounts.findUser(granted.user);
  if (resource === undefined || user === undefined || user?.status === "disabled") {
    throw new OAuthError("invalid_grant", "The grant has ended.");
  }
  const asked = await readResource(form, services);
  if (asked !== undefined && asked?.id !== resource?.id) {
    throw new OAuthError("invalid_target", "The grant is for another resource.");
  }
  const at = appAt(app, resource);
  const scopes = granted.scopes.filter((name) =>
    at.scopes.includes(name) && (user === null || user.scopes.includes(name))
  );
  // If another process has just added the scopes, the error makes `clients.serve` try again.
  const isStale = scopes.length < granted.scopes.length &&
    await accounts.hasChanged(accounts.changes());
  if (scopes.length === 0 || isStale) {
    throw new OAuthError("invalid_scope", "Nothing is left of the scopes that were granted.");
  }
  const nowMs = now();
  return { ...tokens.makeTokens({ ...granted, scopes }, at, nowMs), scopes, nowMs };
}

/** Ends a grant whose code or refresh token was presented twice, maybe stolen; throws `refusal`. */
export async function refuseReplay(
  grantId: string,
  action: "grant.replay" | "grant.reuse",
  refusal: OAuthError,
  { app, request: { address } }: Parameters<Exchange>[0],
  { database, revocations, now }: IssuingServices,
): Promise<never> {
  const nowMs = now();
  const audited = { actor: app.id, action, target: grantId, address };
  const audit = insertAuditOfGrant(grantId, audited, nowMs);
  await database.write([audit, ...revokeGrant(grantId, nowMs)]);
  await revocations.refresh();
  throw refusal;
}
