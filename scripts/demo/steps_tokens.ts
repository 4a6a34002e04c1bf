import { createHash, createPublicKey, randomBytes, verify } from "node:crypto";
import type { DemoApp, Journey } from "./journey.ts";
import type { VisitorResponse } from "./visitor.ts";

/** The two tokens of a grant. */
export interface Tokens {
  readonly access: string;
  readonly refresh: string;
}

const TOKEN = "/authorization/token";
const REVOKE = "/authorization/revoke";
const WHOAMI = "/authorization/whoami";

/** Logs in by POST /consumer/login; returns the token. */
export async function logIn(journey: Journey): Promise<string> {
  const { story, visitor, username, password } = journey;
  story.step("Ada logs in", "She sends user name and password, and gets one token.");
  const wrong = await visitor.postJson("/consumer/login", { username, password: "not this one" });
  story.check("a wrong password gets 401", wrong.status, 401);
  const response = await visitor.postJson("/consumer/login", { username, password });
  const got = [response.status, Object.keys(response.body)];
  story.check("the right one gets 200, a token and nothing else", got, [200, ["token"]]);
  story.check("no cache may store it", response.headers.get("cache-control"), "no-store");
  const token = String(response.body["token"]);
  await checkJwt(journey, token);
  const who = await visitor.get(WHOAMI, token);
  story.check("it identifies Ada", [who.body["username"], who.body["scope"]], [
    username,
    "consumer orders",
  ]);
  return token;
}

/** The authorization code grant with PKCE, as a browser and an app perform it. */
export async function byCode(journey: Journey, app: DemoApp): Promise<Tokens> {
  const { story, visitor, stage, username, password } = journey;
  story.step("Grant 1 of 4: authorization code", "The app sends Ada to the login page.");
  const [state, verifier] = [randomText(), randomText()];
  const query = new URLSearchParams({
    response_type: "code",
    client_id: app.id,
    redirect_uri: app.redirectUri,
    scope: "consumer orders",
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
  });
  const login = await visitor.get(`/authorization/authorize?${query}`);
  story.check("the login page", fieldsOf(login), ["username", "password"]);
  const wrong = await visitor.submit(login, { username, password: "not this one" });
  story.check("after a wrong password, the same page", fieldsOf(wrong), ["username", "password"]);
  const right = await visitor.submit(wrong, { username, password });
  story.check("after the right one, a redirect", right.status, 303);
  const consent = await visitor.get(right.location ?? "");
  const names = ["Order Desk", username].filter((name) => consent.text.includes(name));
  story.check("the consent page names app and user", names, ["Order Desk", username]);
  const back = await visitor.submit(consent, {}, "allow");
  story.check("allowed: 303 to the app", [back.status, pathOf(back)], [303, app.redirectUri]);
  const returned = new URL(back.location ?? "").searchParams;
  story.check("with the state of the request", returned.get("state"), state);
  story.check("and the issuer (RFC 9207)", returned.get("iss"), stage.server.url);

  const exchange = {
    grant_type: "authorization_code",
    code: returned.get("code") ?? "",
    redirect_uri: app.redirectUri,
    code_verifier: verifier,
  };
  const response = await visitor.postForm(TOKEN, exchange, [app.id, app.secret]);
  return checkTokens(journey, response, "consumer orders");
}

/** The client credentials grant: the token represents the app, not a user. */
export async function byClientCredentials(journey: Journey, app: DemoApp): Promise<void> {
  const { story, visitor } = journey;
  story.step("Grant 2 of 4: client credentials", "For the app itself; scopes may have commas.");
  const form = { grant_type: "client_credentials", scope: "consumer,orders" };
  const refused = await visitor.postForm(TOKEN, form, [app.id, "not-this-secret"]);
  story.check("a wrong secret gets 401 invalid_client", [refused.status, refused.body["error"]], [
    401,
    "invalid_client",
  ]);
  const response = await visitor.postForm(TOKEN, form, [app.id, app.secret]);
  const { access } = await checkTokens(journey, response, "consumer orders");
  const who = await visitor.get(WHOAMI, access);
  story.check("it identifies the app", [who.body["kind"], who.body["sub"]], ["app", app.id]);
}

/** The password grant, for an app that may use it, with one scope less. */
export async function byPassword(journey: Journey, app: DemoApp): Promise<void> {
  const { story, visitor, username, password } = journey;
  story.step("Grant 3 of 4: password", "Only for apps with this grant; here with fewer scopes.");
  const form = { grant_type: "password", username, password, scope: "consumer" };
  const response = await visitor.postForm(TOKEN, form, [app.id, app.secret]);
  const { access } = await checkTokens(journey, response, "consumer");
  const refused = await visitor.postJson("/orders/1000", { item: "coffee", quantity: 2 }, access);
  const challenge = refused.headers.get("www-authenticate") ?? "";
  const isTold = challenge.includes('error="insufficient_scope"');
  story.check("a missing scope: 403 insufficient_scope", [refused.status, isTold], [403, true]);
}

/** The refresh token grant: new tokens for a refresh token, which is then used up. */
export async function byRefresh(journey: Journey, app: DemoApp, old: Tokens): Promise<Tokens> {
  const { story, visitor } = journey;
  story.step("Grant 4 of 4: refresh token", "Credentials in the body; the token rotates.");
  const response = await visitor.postForm(TOKEN, {
    grant_type: "refresh_token",
    refresh_token: old.refresh,
    client_id: app.id,
    client_secret: app.secret,
  });
  const tokens = await checkTokens(journey, response, "consumer orders");
  story.check("both are new", tokens.access !== old.access && tokens.refresh !== old.refresh, true);
  return tokens;
}

/** The app revokes its refresh token, which ends the whole grant. */
export async function handBack(journey: Journey, app: DemoApp, tokens: Tokens): Promise<void> {
  const { story, visitor } = journey;
  story.step("The app revokes its tokens", "Revoking a refresh token ends the grant.");
  const basic = [app.id, app.secret] as const;
  const revoked = await visitor.postForm(REVOKE, { token: tokens.refresh }, basic);
  story.check("200", revoked.status, 200);
  const call = await visitor.postJson("/orders/1000", { item: "tea", quantity: 1 }, tokens.access);
  story.check("its access token is refused on the next request", call.status, 401);
  const refresh = { grant_type: "refresh_token", refresh_token: tokens.refresh };
  const response = await visitor.postForm(TOKEN, refresh, basic);
  story.check("and nothing can be refreshed", [response.status, response.body["error"]], [
    400,
    "invalid_grant",
  ]);
}

/** Ends the login token by presenting it. */
export async function logOut({ story, visitor }: Journey, token: string): Promise<void> {
  story.step("Ada logs out", "The holder of a token may revoke it.");
  const first = await visitor.post(REVOKE, token);
  story.check("200 and an empty object", [first.status, first.body], [200, {}]);
  story.check("the second time: 401", (await visitor.post(REVOKE, token)).status, 401);
  story.check("no access", (await visitor.get("/consumer/subscription", token)).status, 401);
}

async function checkTokens(
  journey: Journey,
  response: VisitorResponse,
  scope: string,
): Promise<Tokens> {
  const { story } = journey;
  const { access_token, refresh_token, ...rest } = response.body;
  const described = { token_type: "bearer", expires_in: 3600, scope };
  story.check("200 with type, lifetime and scope", [response.status, rest], [200, described]);
  story.check("two tokens", [typeof access_token, typeof refresh_token], ["string", "string"]);
  story.check("no cache may store it", response.headers.get("cache-control"), "no-store");
  await checkJwt(journey, String(access_token));
  return { access: String(access_token), refresh: String(refresh_token) };
}

/** Verifies a token as another service would, with the published keys alone. */
async function checkJwt({ story, stage }: Journey, token: string): Promise<void> {
  const [head = "", claims = "", signature = ""] = token.split(".");
  const { typ, alg, kid } = decode(head);
  const { iss, aud, exp, iat } = decode(claims);
  const { keys } = await (await fetch(`${stage.server.url}/.well-known/jwks.json`)).json();
  const jwk = keys.find((key: { kid?: unknown }) => key.kid === kid);
  const isGenuine = jwk !== undefined && verify(
    "sha256",
    Buffer.from(`${head}.${claims}`),
    { key: createPublicKey({ key: jwk, format: "jwk" }), dsaEncoding: "ieee-p1363" },
    Buffer.from(signature, "base64url"),
  );
  story.check("a signed JWT (RFC 9068) that the published key verifies", {
    typ,
    alg,
    iss,
    aud,
    lifetime: Number(exp) - Number(iat),
    isGenuine,
  }, {
    typ: "at+jwt",
    alg: "ES256",
    iss: stage.server.url,
    aud: stage.server.url,
    lifetime: 3600,
    isGenuine: true,
  });
}

function decode(part: string): Readonly<Record<string, unknown>> {
  return JSON.parse(Buffer.from(part, "base64url").toString());
}

const randomText = () => randomBytes(32).toString("base64url");

function fieldsOf({ form }: VisitorResponse): string[] {
  return form?.inputs.filter(({ type }) => type !== "hidden").map(({ name }) => name) ?? [];
}

function pathOf({ location = "" }: VisitorResponse): string {
  return location.replace(/\?.*/, "");
}
