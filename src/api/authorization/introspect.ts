import type { Form } from "../../base/form.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import { COUNT, described, FLAG, named, optional, record, TEXT, URI } from "../../base/shape.ts";
import { clientAuthFailed } from "../../oauth/client_auth.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { findApp } from "../../store/apps.ts";
import { findResource } from "../../store/resources.ts";
import { hasActiveGrant } from "../../store/subscriptions.ts";
import { bearerToken } from "../bearer.ts";
import { byApp, type Operation } from "../operation.ts";
import { CREDENTIALS, readOAuthForm, requireParameter, SCOPE, TOKEN_TYPE } from "./oauth_form.ts";
import { findPresentedToken, type PresentedToken, type TokenLookup } from "./presented_token.ts";

type IntrospectionServices = TokenLookup & Pick<Services, "accounts" | "clients" | "issuer">;

const IntrospectForm = named("IntrospectRequest", record({
  token: TEXT,
  token_type_hint: optional(TEXT),
  ...CREDENTIALS,
}));

const Introspection = named("Introspection", described("RFC 7662.", record({
  active: described("If false, the only member: the token is invalid or not the caller's.", FLAG),
  scope: optional(SCOPE),
  client_id: optional(TEXT),
  username: optional(TEXT),
  token_type: optional(TOKEN_TYPE),
  exp: optional(described("Seconds since 1970.", COUNT)),
  iat: optional(described("Only of a JWT of this service: when it was signed.", COUNT)),
  sub: optional(TEXT),
  aud: optional(URI),
  iss: optional(URI),
  jti: optional(TEXT),
})));

/**
 * POST /authorization/introspect (RFC 7662). An app sees its own tokens, a resource server and
 * scope `backend` see all; any other token is reported as not active.
 */
export function introspectOperation(services: IntrospectionServices): Operation {
  return byApp("POST", "/authorization/introspect", "introspectToken",
    "Ask whether a token is active, and what it says", {
    security: "client or token",
    limit: "never",
    form: IntrospectForm,
    returns: Introspection,
    async handle({ request }) {
      const form = await readOAuthForm(request);
      const token = requireParameter(form, "token");
      const maySee = await authorizeIntrospection(request, form, services);
      const presented = await findPresentedToken(token, services);
      const isVisible = presented && maySee(presented.clientId);
      const description = isVisible ? await describe(presented, services) : undefined;
      return description ?? { active: false };
    },
  });
}

/** Returns which apps' tokens the caller may see; throws if the caller is not authenticated. */
async function authorizeIntrospection(
  request: HttpRequest,
  form: Form,
  { bearer, clients }: IntrospectionServices,
): Promise<(app: string) => boolean> {
  if (bearerToken(request) !== undefined) {
    await bearer.authenticate(request, [BACKEND_SCOPE]);
    return () => true;
  }
  const reader = await clients.authenticate(request, form);
  if (reader.type === "public") throw clientAuthFailed(); // RFC 7662 §2.1: it must be authorized
  return (app) => reader.resourceServer || reader.id === app;
}

async function describe(
  presented: PresentedToken,
  { accounts, database, issuer, now }: IntrospectionServices,
) {
  const { sub, clientId, scopes, grantId, audience, jti, state } = presented;
  const { issuedAtMs, expiresAtMs } = presented;
  if (jti === undefined) {
    if (state !== "current" || expiresAtMs <= now()) return undefined;
    const app = await findApp(database, clientId);
    if (!app?.grants.includes("refresh_token")) return undefined;
  }
  const resource = audience === undefined ? undefined : await findResource(database, audience);
  // The grant is checked too, so that a new resource at an old URL revives no tokens.
  const isOver = (jti === undefined || resource) && !await hasActiveGrant(database, grantId);
  if (isOver || audience !== undefined && !resource) return undefined;
  const { client_id, ...named } = await accounts.nameHolder(presented);
  const isOwn = presented.issuer === undefined;
  return {
    active: true,
    iss: presented.issuer ?? issuer,
    ...(isOwn && { aud: resource?.url ?? issuer, client_id }),
    sub,
    // The resource may have lost scopes since.
    scope: scopes.filter((name) => !resource || resource.scopes.includes(name)).join(" "),
    ...named,
    exp: Math.floor(expiresAtMs / 1000),
    ...(issuedAtMs !== undefined && { iat: issuedAtMs / 1000 }),
    ...(jti !== undefined && { token_type: "bearer", jti }),
  };
}
