import assert from "node:assert/strict";
import type { AppLogin, Client, ClientPackage, Tokens } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** What is used of @modelcontextprotocol/sdk 1, `client/auth.js` and `client/streamableHttp.js`. */
interface McpAuth {
  discoverOAuthProtectedResourceMetadata(
    server: string,
  ): Promise<{ readonly authorization_servers?: readonly string[] }>;
}

interface McpTransports {
  readonly StreamableHTTPClientTransport: new (
    server: URL,
    options: { readonly authProvider: Provider },
  ) => Transport;
}

interface Transport {
  start(): Promise<void>;
  send(message: object): Promise<void>;
  finishAuth(code: string): Promise<void>;
  close(): Promise<void>;
}

type TokenResponse = {
  readonly access_token: string;
  readonly refresh_token?: string;
  readonly scope?: string;
};

/** An app in the form that the SDK expects. */
interface Provider {
  readonly clientMetadataUrl?: string;
  readonly redirectUrl: string;
  readonly clientMetadata: { readonly redirect_uris: readonly string[] };
  clientInformation(): object | undefined;
  saveClientInformation(information: object): void;
  tokens(): TokenResponse | undefined;
  saveTokens(tokens: TokenResponse): void;
  redirectToAuthorization(address: URL): void;
  saveCodeVerifier(verifier: string): void;
  codeVerifier(): string;
}

const PACKAGE = "@modelcontextprotocol/sdk";
const METHODS = { basic: "client_secret_basic", body: "client_secret_post", none: "none" } as const;

export const MCP_SDK: ClientPackage = { name: PACKAGE, major: 1, open };

function open(load: PackageLoader, stage: Stage): Client {
  const transports = load<McpTransports>(`${PACKAGE}/client/streamableHttp.js`);
  const { discoverOAuthProtectedResourceMetadata } = load<McpAuth>(`${PACKAGE}/client/auth.js`);
  const { redirectUri } = stage;

  /** The SDK gets no scope: it asks for the `scope` in the challenge of the endpoint. */
  async function logIn(
    scope: string,
    given: Pick<Provider, "clientMetadataUrl"> & { readonly known?: object },
  ): Promise<Tokens> {
    let address: URL | undefined;
    let response: TokenResponse | undefined;
    let verifier = "";
    let { known } = given;
    const authProvider: Provider = {
      ...given,
      redirectUrl: redirectUri,
      clientMetadata: { redirect_uris: [redirectUri] },
      clientInformation: () => known,
      saveClientInformation: (information) => void (known = information),
      tokens: () => response,
      saveTokens: (tokens) => void (response = tokens),
      redirectToAuthorization: (to) => void (address = to),
      saveCodeVerifier: (text) => void (verifier = text),
      codeVerifier: () => verifier,
    };
    const transport = new transports.StreamableHTTPClientTransport(new URL(stage.mcp), {
      authProvider,
    });
    await transport.start();
    const call = { jsonrpc: "2.0", id: 1, method: "ping" };
    await assert.rejects(transport.send(call), { name: "Error", message: "Unauthorized" });
    assert.equal(address?.searchParams.get("scope"), scope);
    assert.equal(address.searchParams.get("resource"), stage.mcp);
    const { searchParams } = await stage.visit(address.href);
    await transport.finishAuth(searchParams.get("code") ?? "");
    await transport.send(call);
    await transport.close();
    assert.ok(response);
    return tokens(response);
  }

  return {
    auth: ["basic", "body", "none"],
    async findServers() {
      const metadata = await discoverOAuthProtectedResourceMetadata(stage.issuer);
      return metadata.authorization_servers ?? [];
    },
    code: (app, scope) => logIn(scope, { known: information(app) }),
    unregistered: (clientMetadataUrl, scope) => logIn(scope, { clientMetadataUrl }),
  };
}

function information({ id, secret, auth }: AppLogin): object {
  return {
    client_id: id,
    token_endpoint_auth_method: METHODS[auth],
    ...(auth !== "none" && { client_secret: secret }),
  };
}

function tokens({ access_token, refresh_token, scope }: TokenResponse): Tokens {
  return { accessToken: access_token, refreshToken: refresh_token, scope };
}
