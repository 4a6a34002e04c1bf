import type { Form } from "../../base/form.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import { newId } from "../../base/id.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { GrantType } from "../../oauth/grant_type.ts";
import type { Resource, Target } from "../../oauth/resource.ts";
import type { Services } from "../../services.ts";
import { type AuditRecord, insertAuditOfGrant } from "../../store/audit.ts";
import { revokeGrant } from "../../store/grant_end.ts";
import { type Grant, insertGrant, type NewGrant } from "../../store/grants.ts";
import { findResource } from "../../store/resources.ts";
import { readResource } from "./oauth_form.ts";

export type IssuingServices = Pick<Services, "database" | "tokens" | "revocations" | "now">;

/** The tokens of a response: what must be stored of them is. */
type IssuedTokens = ReturnType<Services["tokens"]["makeTokens"]>["issued"];

/**
 * One grant type: checks what the form of a proven app presents and issues tokens for it. Throws
 * OAuthError; undefined where the user or the app has been disabled meanwhile.
 */
export type Exchange = (
  request: {
    readonly app: App;
    readonly form: Form;
    readonly request: HttpRequest;
  },
  services: IssuingServices & Pick<Services, "accounts" | "issuer" | "passwordLogin">,
) => Promise<IssuedTokens | undefined>;

/**
 * Stores a new grant and returns its first tokens; a refresh token where the app may use it.
 * Undefined, and nothing is stored, where the user or the app has been disabled meanwhile.
 */
export async function issueGrant(
  { app, audited, ...wanted }: Pick<NewGrant, "user" | "scopes" | "decidedAtMs"> & {
    readonly app: Pick<App, "id" | "grants" | "metadataUrl"> & Target;
    readonly type: GrantType | "login";
    /** Goes into the audit with it. */
    readonly audited?: AuditRecord;
  },
  services: IssuingServices,
): Promise<IssuedTokens | undefined> {
  const nowMs = services.now();
  const parties = { app: app.id, resource: app.resource?.id ?? null };
  const grant = { decidedAtMs: nowMs, ...wanted, ...parties, id: newId("g", nowMs) };
  const { issued, stored } = services.tokens.makeTokens(grant, app, nowMs);
  const { database, revocations } = services;
  const isStored = await insertGrant(database, { ...grant, ...stored }, audited, revocations);
  return isStored ? issued : undefined;
}

/**
 * The resource that a grant is for, none for this service. Throws OAuthError `invalid_grant` where
 * it has been removed, also for who still names it: that tells the app to authorize anew; and
 * `invalid_target` where another is asked for (RFC 8707 §2.2).
 */
export async function grantedResource(
  { resource: granted = null }: Pick<Grant, "resource">,
  form: Form,
  services: Pick<Services, "database" | "issuer">,
): Promise<Resource | null> {
  const resource = granted === null ? null : await findResource(services.database, granted);
  if (resource === undefined) throw new OAuthError("invalid_grant", "The grant has ended.");
  const asked = await readResource(form, services);
  if (asked === undefined || (asked?.id ?? null) === granted) return resource;
  throw new OAuthError("invalid_target", "The grant is for another resource.");
}

/**
 * What is left of granted scopes once those that the app or the user has lost since are taken away.
 * Throws OAuthError `invalid_grant` for a disabled user, `invalid_scope` where nothing is left.
 */
export async function currentScopes(
  granted: readonly string[],
  userId: string | null,
  app: App,
  { accounts }: Pick<Services, "accounts">,
): Promise<string[]> {
  const user = userId === null ? undefined : await accounts.findUser(userId);
  if (userId !== null && user?.status !== "active") {
    throw new OAuthError("invalid_grant", "The grant has ended.");
  }
  const scopes = granted.filter((name) =>
    app.scopes.includes(name) && (user === undefined || user.scopes.includes(name))
  );
  // Or another process has added them a moment ago: then the app is asked for anew.
  const isStale = scopes.length < granted.length && await accounts.hasChanged(accounts.changes());
  if (scopes.length === 0 || isStale) {
    throw new OAuthError("invalid_scope", "Nothing is left of the scopes that were granted.");
  }
  return scopes;
}

/** Ends a grant whose code or refresh token was presented again: one of the two was stolen. */
export async function endReplayedGrant(
  grantId: string,
  action: "grant.replay" | "grant.reuse",
  { app, request: { address } }: Parameters<Exchange>[0],
  { database, revocations, now }: IssuingServices,
): Promise<void> {
  const nowMs = now();
  const audited = { actor: app.id, action, target: grantId, address };
  const audit = insertAuditOfGrant(grantId, audited, nowMs);
  await database.write([audit, ...revokeGrant(grantId, nowMs)]);
  await revocations.refresh();
}
