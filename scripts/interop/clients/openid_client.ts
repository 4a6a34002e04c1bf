import type { AppLogin, Client, ClientPackage, KeyedApp, Members, Tokens } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of openid-client 6 that is used here. */
interface OpenidClient {
  ClientSecretBasic(secret: string): ClientAuthentication;
  ClientSecretPost(secret: string): ClientAuthentication;
  None(): ClientAuthentication;
  PrivateKeyJwt(key: Pick<KeyedApp, "key" | "kid">): ClientAuthentication;
  allowInsecureRequests(config: Configuration): void;
  discovery(
    issuer: URL,
    clientId: string,
    metadata: undefined,
    auth: ClientAuthentication,
    options: {
      /** The document that it reads: "oidc", its default, is openid-configuration. */
      readonly algorithm: "oauth2" | "oidc";
      readonly execute: readonly ((config: Configuration) => void)[];
    },
  ): Promise<Configuration>;
  randomPKCECodeVerifier(): string;
  randomState(): string;
  calculatePKCECodeChallenge(verifier: string): Promise<string>;
  buildAuthorizationUrl(config: Configuration, parameters: Fields): URL;
  authorizationCodeGrant(
    config: Configuration,
    callback: URL,
    checks: { readonly pkceCodeVerifier: string; readonly expectedState: string },
  ): Promise<TokenResponse>;
  clientCredentialsGrant(config: Configuration, parameters: Fields): Promise<TokenResponse>;
  initiateDeviceAuthorization(config: Configuration, parameters: Fields): Promise<Device>;
  pollDeviceAuthorizationGrant(config: Configuration, device: Device): Promise<TokenResponse>;
  genericGrantRequest(
    config: Configuration,
    grant: string,
    parameters: Fields,
  ): Promise<TokenResponse>;
  refreshTokenGrant(
    config: Configuration,
    token: string,
    parameters: Fields,
  ): Promise<TokenResponse>;
  tokenRevocation(config: Configuration, token: string, parameters: Fields): Promise<void>;
  tokenIntrospection(config: Configuration, token: string): Promise<Members>;
  fetchProtectedResource(
    config: Configuration,
    token: string,
    url: URL,
    method: string,
  ): Promise<Response>;
}

type ClientAuthentication = (...request: readonly never[]) => void;
type Configuration = { serverMetadata(): { readonly issuer: string } };
type Fields = Readonly<Record<string, string>>;
type Device = { readonly verification_uri_complete?: string };
type TokenResponse = {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly scope?: string;
};

export const OPENID_CLIENT: ClientPackage = { name: "openid-client", major: 6, open };

function open(load: PackageLoader, stage: Stage): Client {
  const openid = load<OpenidClient>("openid-client");
  const { issuer, redirectUri } = stage;

  function prove({ secret, auth }: AppLogin): ClientAuthentication {
    switch (auth) {
      case "basic":
        return openid.ClientSecretBasic(secret);
      case "body":
        return openid.ClientSecretPost(secret);
      case "none":
        return openid.None();
      default:
        return auth satisfies never;
    }
  }
  function configure(
    app: AppLogin | KeyedApp,
    algorithm: "oauth2" | "oidc" = "oauth2",
  ): Promise<Configuration> {
    const options = { algorithm, execute: [openid.allowInsecureRequests] };
    const proof = "key" in app ? openid.PrivateKeyJwt(app) : prove(app);
    return openid.discovery(new URL(issuer), app.id, undefined, proof, options);
  }

  return {
    auth: ["basic", "body", "none"],
    checksIss: true,
    async discover() {
      const found = await Promise.all([
        configure(stage.app("basic"), "oauth2"),
        configure(stage.app("basic"), "oidc"),
      ]);
      const [one, other] = found.map((config) => config.serverMetadata().issuer);
      if (one === undefined || one !== other) {
        throw new Error("the two ways find different servers");
      }
      return one;
    },
    async credentials(app, scope) {
      return tokens(await openid.clientCredentialsGrant(await configure(app), { scope }));
    },
    async keyedCredentials(app, scope) {
      return tokens(await openid.clientCredentialsGrant(await configure(app), { scope }));
    },
    async code(app, scope, change) {
      const config = await configure(app);
      const pkceCodeVerifier = openid.randomPKCECodeVerifier();
      const expectedState = openid.randomState();
      const address = openid.buildAuthorizationUrl(config, {
        redirect_uri: redirectUri,
        scope,
        state: expectedState,
        code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: "S256",
      });
      const callback = await stage.visit(address.href);
      change?.(callback);
      const checks = { pkceCodeVerifier, expectedState };
      return tokens(await openid.authorizationCodeGrant(config, callback, checks));
    },
    async device(app, scope, send) {
      const config = await configure(app);
      const device = await openid.initiateDeviceAuthorization(config, { scope });
      await send(device.verification_uri_complete ?? "");
      const soon = { ...device, interval: 1 }; // already decided: the first poll is the last
      return tokens(await openid.pollDeviceAuthorizationGrant(config, soon));
    },
    async password(app, username, password, scope) {
      const parameters = { username, password, scope };
      return tokens(await openid.genericGrantRequest(await configure(app), "password", parameters));
    },
    async refresh(app, refreshToken, scope) {
      const parameters: Fields = scope === undefined ? {} : { scope };
      return tokens(await openid.refreshTokenGrant(await configure(app), refreshToken, parameters));
    },
    async revoke(app, token, token_type_hint) {
      await openid.tokenRevocation(await configure(app), token, { token_type_hint });
    },
    async introspect(app, token) {
      return openid.tokenIntrospection(await configure(app), token);
    },
    async request(address, accessToken) {
      const config = await configure(stage.app("basic"));
      const url = new URL(address);
      const response = await openid.fetchProtectedResource(config, accessToken, url, "GET");
      const members: Members = JSON.parse(await response.text());
      return members;
    },
  };
}

function tokens({ access_token, refresh_token, scope }: TokenResponse): Tokens {
  return { accessToken: access_token, refreshToken: refresh_token, scope };
}
