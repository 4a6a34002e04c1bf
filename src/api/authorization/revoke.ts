import { MAX_FORM_BYTES } from "../../base/form.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import { Problem } from "../../base/problem.ts";
import { described, named, optional, record, shown, TEXT } from "../../base/shape.ts";
import { invalidRequest, OAuthError } from "../../oauth/errors.ts";
import { type Caller, CONSOLE_APP } from "../../oauth/principal.ts";
import { actorOf, insertAudit, insertAuditOfGrant } from "../../store/audit.ts";
import type { Sql } from "../../database/sql.ts";
import { revokeBareGrant, revokeGrant } from "../../store/grant_end.ts";
import { revocation } from "../../store/revocations.ts";
import type { Services } from "../../services.ts";
import { readAnyBody } from "../../http/body.ts";
import { type Bearer, bearerToken } from "../bearer.ts";
import { PAGES_OF_APPS } from "../cors.ts";
import { byApp, type Operation } from "../operation.ts";
import { checkQuery, CREDENTIALS, readOAuthForm, requireParameter } from "./oauth_form.ts";
import { findPresentedToken, type PresentedToken, type TokenLookup } from "./presented_token.ts";

const RevokeForm = optional(named("RevokeRequest", record({
  token: optional(
    described("An access or a refresh token; absent: the one in the Authorization header.", TEXT),
  ),
  token_type_hint: optional(TEXT),
  ...CREDENTIALS,
})));

const NAMES_ANOTHER = ["token", ...Object.keys(CREDENTIALS)];
const [maxBytes, maxFormBytes] = [MAX_FORM_BYTES, MAX_FORM_BYTES];
const BODY = { kinds: ["json", "form"], maxBytes, maxFormBytes, readsAll: false } as const;

const Empty = named("Empty", shown({ type: "object", maxProperties: 0 }));

/**
 * POST /authorization/revoke (RFC 7009). An app ends a token that was issued to it. Or the holder
 * of an access token ends it: then the token is in the Authorization header, and none in the body.
 */
export function revokeOperation(
  services: TokenLookup & Pick<Services, "clients" | "revocations">,
): Operation {
  const { database, clients, bearer, revocations, now, config } = services;

  /** Finds the token that an app names; throws OAuthError if it was issued to another app. */
  async function findNamed(request: HttpRequest): Promise<PresentedToken | undefined> {
    if (!config.authorizationServer) {
      throw new Problem(404, "not_found", "No tokens are issued here; send yours in the header.");
    }
    const form = await readOAuthForm(request);
    const token = requireParameter(form, "token");
    const app = await clients.authenticate(request, form);
    const named = await findPresentedToken(token, services);
    if (!named || named.clientId === app.id) return named;
    throw new OAuthError("unauthorized_client", "The token was issued to another app.");
  }

  return byApp("POST", "/authorization/revoke", "revokeToken",
    "Revoke an access or a refresh token", {
    security: "client or token",
    cors: PAGES_OF_APPS,
    limit: "never",
    form: RevokeForm,
    returns: Empty,
    async handle({ request }) {
      const isByHolder = bearerToken(request) !== undefined; // else by the credentials of its app
      const presented = isByHolder ? await authenticateAlone(request, bearer)
        : await findNamed(request);
      if (!presented) return {};
      const by = isByHolder ? presented : { sub: presented.clientId, clientId: presented.clientId };
      await database.write(endToken(presented, actorOf(by, request), now()));
      await revocations.refresh();
      return {};
    },
  });
}

/**
 * An access token ends alone, a refresh token with its grant (RFC 7009 §2.1). A personal or a login
 * token is the only one of its grant, so the grant ends. The end of a user's grant is audited.
 */
function endToken(
  { clientId, kind, grantId, jti, expiresAtMs }: PresentedToken,
  by: ReturnType<typeof actorOf>,
  nowMs: number,
): Sql[] {
  const audited = { ...by, action: "grant.revoke", target: grantId };
  // A window of the console revokes its own token whenever it is closed.
  const isAudited = kind === "user" && clientId !== CONSOLE_APP;
  if (jti === undefined || jti === grantId) {
    const audit = isAudited ? [insertAuditOfGrant(grantId, audited, nowMs)] : [];
    return [...audit, ...revokeGrant(grantId, nowMs)];
  }
  const bare = revokeBareGrant(grantId, nowMs);
  const audit = isAudited ? [insertAudit(audited, nowMs, bare.when)] : [];
  return [...audit, revocation(jti, expiresAtMs, expiresAtMs), bare];
}

/** Returns the caller of a request that revokes its own token; throws if it names another. */
async function authenticateAlone(request: HttpRequest, bearer: Bearer): Promise<Caller> {
  checkQuery(request);
  // Some clients send {} with every POST, which names no other token.
  const { value } = await readAnyBody(request, BODY);
  const fields = value instanceof URLSearchParams ? [...value] : Object.entries(value ?? {});
  if (fields.some(([name, text]) => NAMES_ANOTHER.includes(name) && text !== "")) {
    throw invalidRequest("Send a token in the header or the body, not both.");
  }
  return bearer.authenticate(request, []);
}
