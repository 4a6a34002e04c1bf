import { createHash, randomBytes } from "node:crypto";
import type { AppLogin, Client, ClientPackage, Tokens } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of simple-oauth2 5 that is used here. */
interface SimpleOauth2 {
  readonly AuthorizationCode: new (config: object) => CodeGrant;
  readonly ClientCredentials: new (config: object) => TokenGrant;
  readonly ResourceOwnerPassword: new (config: object) => TokenGrant;
}

interface TokenGrant {
  getToken(parameters: Fields): Promise<AccessToken>;
  createToken(token: Fields): AccessToken;
}

interface CodeGrant extends TokenGrant {
  authorizeURL(parameters: Fields): string;
}

interface AccessToken {
  readonly token: {
    readonly access_token: string;
    readonly refresh_token?: string;
    readonly scope?: string;
  };
  refresh(parameters: Fields): Promise<AccessToken>;
  revoke(kind: string): Promise<unknown>;
}

type Fields = Readonly<Record<string, string>>;

export const SIMPLE_OAUTH2: ClientPackage = { name: "simple-oauth2", major: 5, open };

function open(load: PackageLoader, stage: Stage): Client {
  const oauth = load<SimpleOauth2>("simple-oauth2");
  const { redirectUri } = stage;

  /** The client takes an origin and paths; a public app has an empty secret in the body. */
  function configure({ id, secret, auth }: AppLogin, more: object = {}) {
    const { origin } = new URL(stage.issuer);
    const path = (name: "authorize" | "token" | "revoke") => new URL(stage.endpoint(name)).pathname;
    return {
      client: { id, secret },
      auth: { tokenHost: origin, tokenPath: path("token"), revokePath: path("revoke"), ...more },
      options: { authorizationMethod: auth === "basic" ? "header" : "body" },
    };
  }
  function openCodeGrant(app: AppLogin): CodeGrant {
    const { pathname } = new URL(stage.endpoint("authorize"));
    return new oauth.AuthorizationCode(configure(app, { authorizePath: pathname }));
  }

  return {
    auth: ["basic", "body", "none"],
    async credentials(app, scope) {
      return tokens(await new oauth.ClientCredentials(configure(app)).getToken({ scope }));
    },
    async code(app, scope) {
      const grant = openCodeGrant(app);
      // The client has no PKCE of its own, but sends the parameters that it gets.
      const code_verifier = randomBytes(32).toString("base64url");
      const address = grant.authorizeURL({
        redirect_uri: redirectUri,
        scope,
        state: randomBytes(16).toString("hex"),
        code_challenge: createHash("sha256").update(code_verifier).digest("base64url"),
        code_challenge_method: "S256",
      });
      const code = (await stage.visit(address)).searchParams.get("code") ?? "";
      return tokens(await grant.getToken({ code, redirect_uri: redirectUri, code_verifier }));
    },
    async password(app, username, password, scope) {
      const grant = new oauth.ResourceOwnerPassword(configure(app));
      return tokens(await grant.getToken({ username, password, scope }));
    },
    async refresh(app, refresh_token, scope) {
      const token = openCodeGrant(app).createToken({ refresh_token });
      return tokens(await token.refresh(scope === undefined ? {} : { scope }));
    },
    async revoke(app, token, hint) {
      await openCodeGrant(app).createToken({ [hint]: token }).revoke(hint);
    },
  };
}

function tokens({ token }: AccessToken): Tokens {
  const { access_token, refresh_token, scope } = token;
  return { accessToken: access_token, refreshToken: refresh_token, scope };
}
