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

/** A token response (RFC 6749 §5.1): what must be stored of it is. */
type IssuedTokens = ReturnType<Services["tokens"]["makeTokens"]>["issued"];

/**
 * One grant type: checks what the form of a proven app presents and issues tokens for it. Throws
 * OAuthError; undefined where the user or the app has been disabled meanwhile.
 */
export type Exchange = (
  request: { readonly app: App; readonly form: Form; readonly request: HttpRequest },
  services: IssuingServices & Pick<Services, "accounts" | "issuer" | "passwordLogin">,
) => Promise<IssuedTokens | undefined>;

/** A grant as it is wanted. */
interface WantedGrant extends Pick<NewGrant, "user" | "scopes" | "decidedAtMs"> {
  readonly app: Pick<App, "id" | "grants" | "metadataUrl"> & Target;
  readonly type: GrantType | "login";
  /** Goes into the audit with it. */
  readonly audited?: NewAuditEntry;
  /** What its password login stores. */
  readonly uses?: readonly Sql[];
}

/**
 * Stores a new grant and returns its first tokens; a refresh token where the app may use it.
 * Undefined, and nothing is stored, where the user or the app has been disabled meanwhile, or a
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
 * What a user may grant an app, as `grantScope` has it. Throws OAuthError `invalid_scope` where no
 * token can carry it, before the user is asked: the app would get nothing for what is allowed.
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
 * The next tokens of a grant, or the first of a code that becomes one, their time and their scopes:
 * those of its own that app and user still have. Throws OAuthError `invalid_grant` where its user
 * or its resource has ended, which tells the app to authorize anew; `invalid_target` where it is
 * for another resource (RFC 8707 §2.2); `invalid_scope` where nothing is left.
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
  // Or another process has added them a moment ago: then the app is asked for anew.
  const isStale = scopes.length < granted.scopes.length &&
    await accounts.hasChanged(accounts.changes());
  if (scopes.length === 0 || isStale) {
    throw new OAuthError("invalid_scope", "Nothing is left of the scopes that were granted.");
  }
  const nowMs = now();
  return { ...tokens.makeTokens({ ...granted, scopes }, at, nowMs), scopes, nowMs };
}

/** Ends a grant whose code or refresh token came twice: one was stolen. Throws the refusal. */
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
