import { randomBytes } from "node:crypto";
import type { AppLogin, Client, ClientPackage, Members, Tokens } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of @badgateway/oauth2-client 3 that is used here. */
interface Badgateway {
  readonly OAuth2Client: new (settings: object) => OAuth2Client;
  readonly OAuth2Fetch: new (options: {
    readonly client: OAuth2Client;
    readonly getNewToken: () => Promise<Token>;
    readonly getStoredToken: () => Token;
    readonly scheduleRefresh: boolean;
  }) => { fetch(url: string): Promise<Response> };
  generateCodeVerifier(): Promise<string>;
}

interface OAuth2Client {
  /** What discovery found. */
  readonly serverMetadata: { readonly issuer: string } | null;
  discover(): Promise<void>;
  clientCredentials(parameters: { readonly scope: readonly string[] }): Promise<Token>;
  password(parameters: {
    readonly username: string;
    readonly password: string;
    readonly scope: readonly string[];
  }): Promise<Token>;
  readonly authorizationCode: {
    getAuthorizeUri(parameters: object): Promise<string>;
    getTokenFromCodeRedirect(callback: URL, parameters: object): Promise<Token>;
  };
  refreshToken(token: Token, parameters?: { readonly scope: readonly string[] }): Promise<Token>;
  revoke(token: Token, hint: string): Promise<unknown>;
  introspect(token: Token): Promise<Members>;
}

interface Token {
  readonly accessToken: string;
  readonly refreshToken: string | null;
  readonly expiresAt: number | null;
  readonly scope?: readonly string[];
}

const NAME = "@badgateway/oauth2-client";

export const BADGATEWAY: ClientPackage = { name: NAME, major: 3, open };

function open(load: PackageLoader, stage: Stage): Client {
  const oauth = load<Badgateway>(NAME);
  const { issuer, redirectUri } = stage;
  const { origin, pathname } = new URL(issuer);

  function configure({ id, secret, auth }: AppLogin): OAuth2Client {
    const path = pathname === "/" ? "" : pathname;
    return new oauth.OAuth2Client({
      server: issuer,
      // By itself the client looks only at the origin.
      ...(path !== "" && {
        discoveryEndpoint: `${origin}/.well-known/oauth-authorization-server${path}`,
      }),
      clientId: id,
      ...(secret !== "" && { clientSecret: secret }),
      authenticationMethod: auth === "basic" ? "client_secret_basic" : "client_secret_post",
    });
  }

  return {
    auth: ["basic", "body", "none"],
    async discover() {
      const client = configure(stage.app("basic"));
      await client.discover();
      return client.serverMetadata?.issuer ?? "";
    },
    async credentials(app, scope) {
      return tokens(await configure(app).clientCredentials({ scope: [scope] }));
    },
    async code(app, scope) {
      const { authorizationCode } = configure(app);
      const codeVerifier = await oauth.generateCodeVerifier();
      const state = randomBytes(16).toString("hex");
      const parameters = { redirectUri, codeVerifier, state };
      const address = await authorizationCode.getAuthorizeUri({
        ...parameters,
        scope: scope.split(" "),
      });
      const callback = await stage.visit(address);
      return tokens(await authorizationCode.getTokenFromCodeRedirect(callback, parameters));
    },
    async password(app, username, password, scope) {
      const parameters = { username, password, scope: scope.split(" ") };
      return tokens(await configure(app).password(parameters));
    },
    async refresh(app, refreshToken, scope) {
      const parameters = scope === undefined ? undefined : { scope: [scope] };
      return tokens(await configure(app).refreshToken(held("", refreshToken), parameters));
    },
    async revoke(app, token, hint) {
      await configure(app).revoke(held(token, token), hint);
    },
    introspect: (app, token) => configure(app).introspect(held(token)),
    async request(url, accessToken) {
      const wrapper = new oauth.OAuth2Fetch({
        client: configure(stage.app("basic")),
        // The client asks for a token when the server returns 401.
        getNewToken: () => Promise.reject(new Error("401")),
        getStoredToken: () => held(accessToken),
        scheduleRefresh: false,
      });
      const response = await wrapper.fetch(url);
      if (!response.ok) throw new Error(String(response.status));
      const members: Members = JSON.parse(await response.text());
      return members;
    },
  };
}

/** A token as the client stores it. */
function held(accessToken: string, refreshToken: string | null = null): Token {
  return { accessToken, refreshToken, expiresAt: null };
}

function tokens({ accessToken, refreshToken, scope }: Token): Tokens {
  return { accessToken, refreshToken: refreshToken ?? undefined, scope: scope?.join(" ") };
}
