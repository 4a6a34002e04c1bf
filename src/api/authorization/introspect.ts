import type { Form } from "../../base/form.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import {
  COUNT,
  described,
  FLAG,
  named,
  optional,
  record,
  shown,
  TEXT,
  URI,
} from "../../base/shape.ts";
import { clientAuthFailed } from "../../oauth/client_auth.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import { formatScope } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { findApp } from "../../store/apps.ts";
import { hasActiveGrant } from "../../store/subscriptions.ts";
import { findUser } from "../../store/users.ts";
import { bearerToken } from "../bearer.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import { type Operation, operation } from "../operation.ts";
import { CREDENTIALS, readOAuthForm, requireParameter, SCOPE } from "./oauth_form.ts";
import {
  findPresentedToken,
  type PresentedToken,
  type PresentedTokenServices,
} from "./presented_token.ts";

type IntrospectionServices = PresentedTokenServices & Pick<Services, "clients" | "issuer">;

const IntrospectForm = named("IntrospectRequest", record({
  token: TEXT,
  token_type_hint: optional(TEXT),
  ...CREDENTIALS,
}));

const Introspection = named("Introspection", described("RFC 7662.", record({
  active: described("False, and nothing else, for what is not good or not the asker's.", FLAG),
  scope: optional(SCOPE),
  client_id: optional(TEXT),
  username: optional(TEXT),
  token_type: optional(shown({ const: "bearer" })),
  exp: optional(described("Seconds since 1970.", COUNT)),
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
  return operation({
    id: "introspectToken",
    method: "POST",
    path: "/authorization/introspect",
    access: "public",
    security: "client or token",
    cors: false,
    errors: "oauth",
    summary: "Ask whether a token is active, and what it says",
    form: IntrospectForm,
    responses: { 200: Introspection },
    refuses: [401, 429],
    async handle({ request }) {
      const form = await readOAuthForm(request);
      const token = requireParameter(form, "token");
      const maySee = await authorizeIntrospection(request, form, services);
      const presented = await findPresentedToken(token, services);
      const isVisible = presented && maySee(presented.app);
      const description = isVisible ? await describe(presented, services) : undefined;
      return jsonResponse(200, description ?? { active: false }, NO_STORE);
    },
  });
}

/** Says of which apps the asker may see tokens; throws when the asker proves nothing. */
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
  { database, issuer, now }: IntrospectionServices,
): Promise<Record<string, unknown> | undefined> {
  const common = { active: true, aud: issuer, iss: issuer };
  const findName = async (userId: string) => {
    const user = await findUser(database, userId);
    return user && { username: user.username };
  };
  if (presented.kind === "access") {
    const { sub, clientId, scopes, expiresAtMs, jti, kind } = presented.caller;
    return {
      ...common,
      scope: formatScope(scopes),
      client_id: clientId,
      ...(kind === "user" && await findName(sub)),
      token_type: "bearer",
      exp: expiresAtMs / 1000,
      sub,
      jti,
    };
  }
  const { grant: { id, app: clientId, user, scopes, refreshUntilMs }, state } = presented;
  const isGood = state === "current" && refreshUntilMs > now() &&
    await hasActiveGrant(database, id);
  const app = await findApp(database, clientId);
  if (!isGood || !app?.grants.includes("refresh_token")) return undefined;
  return {
    ...common,
    scope: formatScope(scopes),
    client_id: clientId,
    ...(user !== null && await findName(user)),
    exp: Math.floor(refreshUntilMs / 1000),
    sub: user ?? clientId,
  };
}
