import assert from "node:assert/strict";
import type {
  AppLogin,
  Client,
  ClientPackage,
  KeyedApp,
  Members,
  Tokens,
} from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of oauth4webapi 3 that is used here. */
interface Oauth4webapi {
  readonly allowInsecureRequests: symbol;
  ClientSecretBasic(secret: string): ClientAuthentication;
  ClientSecretPost(secret: string): ClientAuthentication;
  None(): ClientAuthentication;
  PrivateKeyJwt(key: Pick<KeyedApp, "key" | "kid">): ClientAuthentication;
  discoveryRequest(issuer: URL, options: object): Promise<Response>;
  processDiscoveryResponse(issuer: URL, response: Response): Promise<Server>;
  resourceDiscoveryRequest(resource: URL, options: object): Promise<Response>;
  processResourceDiscoveryResponse(resource: URL, response: Response): Promise<Resource>;
  generateRandomCodeVerifier(): string;
  generateRandomState(): string;
  calculatePKCECodeChallenge(verifier: string): Promise<string>;
  validateAuthResponse(as: Server, app: App, url: URL, state: string): URLSearchParams;
  authorizationCodeGrantRequest(
    ...request: [Server, App, ClientAuthentication, URLSearchParams, string, string, object]
  ): Promise<Response>;
  processAuthorizationCodeResponse(
    as: Server,
    app: App,
    response: Response,
  ): Promise<TokenResponse>;
  clientCredentialsGrantRequest(
    ...request: [Server, App, ClientAuthentication, object, object]
  ): Promise<Response>;
  processClientCredentialsResponse(
    as: Server,
    app: App,
    response: Response,
  ): Promise<TokenResponse>;
  deviceAuthorizationRequest(
    ...request: [Server, App, ClientAuthentication, object, object]
  ): Promise<Response>;
  processDeviceAuthorizationResponse(as: Server, app: App, response: Response): Promise<Device>;
  deviceCodeGrantRequest(
    ...request: [Server, App, ClientAuthentication, string, object]
  ): Promise<Response>;
  processDeviceCodeResponse(as: Server, app: App, response: Response): Promise<TokenResponse>;
  genericTokenEndpointRequest(
    ...request: [Server, App, ClientAuthentication, string, object, object]
  ): Promise<Response>;
  processGenericTokenEndpointResponse(
    as: Server,
    app: App,
    response: Response,
  ): Promise<TokenResponse>;
  refreshTokenGrantRequest(
    ...request: [Server, App, ClientAuthentication, string, object]
  ): Promise<Response>;
  processRefreshTokenResponse(as: Server, app: App, response: Response): Promise<TokenResponse>;
  revocationRequest(
    ...request: [Server, App, ClientAuthentication, string, object]
  ): Promise<Response>;
  processRevocationResponse(response: Response): Promise<undefined>;
  introspectionRequest(
    ...request: [Server, App, ClientAuthentication, string, object]
  ): Promise<Response>;
  processIntrospectionResponse(as: Server, app: App, response: Response): Promise<Members>;
  protectedResourceRequest(
    ...request: [string, string, URL, Headers | undefined, undefined, object]
  ): Promise<Response>;
  validateJwtAccessToken(
    ...request: [Server, Request, string, object]
  ): Promise<Members>;
}

type ClientAuthentication = (...request: readonly never[]) => void;
type Server = { readonly issuer: string; readonly authorization_endpoint?: string };
type App = { readonly client_id: string };
type Resource = { readonly resource: string; readonly authorization_servers?: readonly string[] };
type Device = { readonly device_code: string; readonly verification_uri_complete?: string };
type TokenResponse = {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly scope?: string;
};

export const OAUTH4WEBAPI: ClientPackage = { name: "oauth4webapi", major: 3, open };

function open(load: PackageLoader, stage: Stage): Client {
  const oauth = load<Oauth4webapi>("oauth4webapi");
  const { issuer, redirectUri } = stage;
  // Loopback has no TLS.
  const options = { [oauth.allowInsecureRequests]: true };
  const url = new URL(issuer);

  async function discover(): Promise<Server> {
    const response = await oauth.discoveryRequest(url, { ...options, algorithm: "oauth2" });
    return oauth.processDiscoveryResponse(url, response);
  }
  const found = discover();
  // The error is reported where `found` is awaited.
  found.catch(() => {});

  function prove({ secret, auth }: AppLogin): ClientAuthentication {
    switch (auth) {
      case "basic":
        return oauth.ClientSecretBasic(secret);
      case "body":
        return oauth.ClientSecretPost(secret);
      case "none":
        return oauth.None();
      default:
        return auth satisfies never;
    }
  }

  return {
    auth: ["basic", "body", "none"],
    checksIss: true,
    discover: async () => (await discover()).issuer,
    async findServers() {
      const request = oauth.protectedResourceRequest(
        "none",
        "GET",
        new URL(stage.whoami),
        undefined,
        undefined,
        options,
      );
      const address = await request.then(() => "", readResourceMetadata);
      const whoami = new URL(stage.whoami);
      const response = await oauth.resourceDiscoveryRequest(whoami, options);
      assert.equal(response.url, address);
      const resource = await oauth.processResourceDiscoveryResponse(whoami, response);
      return resource.authorization_servers ?? [];
    },
    async credentials(app, scope) {
      const as = await found;
      const client = { client_id: app.id };
      const response = await oauth.clientCredentialsGrantRequest(
        as,
        client,
        prove(app),
        { scope },
        options,
      );
      return tokens(await oauth.processClientCredentialsResponse(as, client, response));
    },
    async keyedCredentials({ id: client_id, key, kid }, scope) {
      const as = await found;
      const client = { client_id };
      const response = await oauth.clientCredentialsGrantRequest(
        as,
        client,
        oauth.PrivateKeyJwt({ key, kid }),
        { scope },
        options,
      );
      return tokens(await oauth.processClientCredentialsResponse(as, client, response));
    },
    async code(app, scope, change) {
      const as = await found;
      const client = { client_id: app.id };
      const verifier = oauth.generateRandomCodeVerifier();
      const state = oauth.generateRandomState();
      const address = new URL(as.authorization_endpoint ?? "");
      address.search = new URLSearchParams({
        response_type: "code",
        client_id: app.id,
        redirect_uri: redirectUri,
        scope,
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      }).toString();
      const callback = await stage.visit(address.href);
      change?.(callback);
      const parameters = oauth.validateAuthResponse(as, client, callback, state);
      const response = await oauth.authorizationCodeGrantRequest(
        as,
        client,
        prove(app),
        parameters,
        redirectUri,
        verifier,
        options,
      );
      return tokens(await oauth.processAuthorizationCodeResponse(as, client, response));
    },
    async device(app, scope, send) {
      const as = await found;
      const client = { client_id: app.id };
      const asked = await oauth.deviceAuthorizationRequest(
        as,
        client,
        prove(app),
        { scope },
        options,
      );
      const device = await oauth.processDeviceAuthorizationResponse(as, client, asked);
      const poll = async () => {
        const code = device.device_code;
        const response = await oauth.deviceCodeGrantRequest(as, client, prove(app), code, options);
        return oauth.processDeviceCodeResponse(as, client, response);
      };
      await assert.rejects(poll(), { error: "authorization_pending" });
      await assert.rejects(poll(), { error: "slow_down" });
      await send(device.verification_uri_complete ?? "");
      return tokens(await poll());
    },
    async password(app, username, password, scope) {
      const as = await found;
      const client = { client_id: app.id };
      const response = await oauth.genericTokenEndpointRequest(
        as,
        client,
        prove(app),
        "password",
        { username, password, scope },
        options,
      );
      return tokens(await oauth.processGenericTokenEndpointResponse(as, client, response));
    },
    async refresh(app, refreshToken, scope) {
      const as = await found;
      const client = { client_id: app.id };
      const more = { ...options, ...(scope && { additionalParameters: { scope } }) };
      const response = await oauth.refreshTokenGrantRequest(
        as,
        client,
        prove(app),
        refreshToken,
        more,
      );
      return tokens(await oauth.processRefreshTokenResponse(as, client, response));
    },
    async revoke(app, token, token_type_hint) {
      const more = { ...options, additionalParameters: { token_type_hint } };
      const client = { client_id: app.id };
      const response = await oauth.revocationRequest(await found, client, prove(app), token, more);
      await oauth.processRevocationResponse(response);
    },
    async introspect(app, token) {
      const as = await found;
      const client = { client_id: app.id };
      const response = await oauth.introspectionRequest(as, client, prove(app), token, options);
      return oauth.processIntrospectionResponse(as, client, response);
    },
    async request(address, accessToken) {
      const response = await oauth.protectedResourceRequest(
        accessToken,
        "GET",
        new URL(address),
        undefined,
        undefined,
        options,
      );
      const members: Members = JSON.parse(await response.text());
      return members;
    },
    async verify(accessToken, audience) {
      const headers = { authorization: `Bearer ${accessToken}` };
      const request = new Request(stage.whoami, { headers });
      return oauth.validateJwtAccessToken(await found, request, audience, options);
    },
  };
}

/** The address that a challenge names (RFC 9728 §5.1). */
function readResourceMetadata(error: unknown): string {
  const { cause }: { cause?: unknown } = error instanceof Error ? error : {};
  const challenges: readonly { readonly parameters: Members }[] = Array.isArray(cause) ? cause : [];
  return String(challenges[0]?.parameters["resource_metadata"]);
}

function tokens({ access_token, refresh_token, scope }: TokenResponse): Tokens {
  return { accessToken: access_token, refreshToken: refresh_token, scope };
}
