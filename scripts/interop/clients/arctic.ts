import assert from "node:assert/strict";
import type { AppLogin, Client, ClientPackage, Tokens } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of arctic 3 that is used here. */
interface Arctic {
  readonly OAuth2Client: new (
    id: string,
    secret: string | null,
    redirectUri: string,
  ) => OAuth2Client;
  readonly CodeChallengeMethod: { readonly S256: number };
  generateState(): string;
  generateCodeVerifier(): string;
}

interface OAuth2Client {
  createAuthorizationURLWithPKCE(
    endpoint: string,
    state: string,
    method: number,
    verifier: string,
    scopes: readonly string[],
  ): URL;
  validateAuthorizationCode(
    endpoint: string,
    code: string,
    verifier: string,
  ): Promise<TokenResponse>;
  refreshAccessToken(
    endpoint: string,
    token: string,
    scopes: readonly string[],
  ): Promise<TokenResponse>;
  revokeToken(endpoint: string, token: string): Promise<void>;
}

interface TokenResponse {
  accessToken(): string;
  refreshToken(): string;
  scopes(): readonly string[];
}

export const ARCTIC: ClientPackage = { name: "arctic", major: 3, open };

function open(load: PackageLoader, stage: Stage): Client {
  const arctic = load<Arctic>("arctic");
  const endpoint = stage.endpoint("token");

  const configure = ({ id, secret, auth }: AppLogin): OAuth2Client =>
    new arctic.OAuth2Client(id, auth === "none" ? null : secret, stage.redirectUri);

  return {
    auth: ["basic", "none"],
    async code(app, scope) {
      const client = configure(app);
      const state = arctic.generateState();
      const verifier = arctic.generateCodeVerifier();
      const address = client.createAuthorizationURLWithPKCE(
        stage.endpoint("authorize"),
        state,
        arctic.CodeChallengeMethod.S256,
        verifier,
        scope.split(" "),
      );
      const { searchParams } = await stage.visit(address.href);
      // arctic leaves this check to the app.
      assert.equal(searchParams.get("state"), state);
      const code = searchParams.get("code") ?? "";
      return tokens(await client.validateAuthorizationCode(endpoint, code, verifier));
    },
    async refresh(app, refreshToken, scope) {
      const scopes = scope === undefined ? [] : [scope];
      return tokens(await configure(app).refreshAccessToken(endpoint, refreshToken, scopes));
    },
    revoke: (app, token) => configure(app).revokeToken(stage.endpoint("revoke"), token),
  };
}

function tokens(response: TokenResponse): Tokens {
  return {
    accessToken: response.accessToken(),
    refreshToken: response.refreshToken(),
    scope: response.scopes().join(" "),
  };
}
