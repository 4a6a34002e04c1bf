import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type ClientResponse, type Client, createClient } from "./http_client.ts";
import { type RunningServer, startServer } from "./process.ts";
import { authorizePath, basicAuth, bearer, newAddress, newName, newPkce } from "./requests.ts";
import { readTokens } from "./responses.ts";

/** The server's source: the code that it runs counts in the coverage. */
export const SOURCE_ENTRY = fileURLToPath(new URL("../../src/server.ts", import.meta.url));

/** The password of user `admin`, and of each user that `createUser` gets no other password for. */
export const PASSWORD = "correct horse battery";

type Fields = Readonly<Record<string, string>>;

/** What a user types to log in. */
export type Credentials = Pick<TestUser, "username" | "password">;

/** A user as a test knows it. */
export interface TestUser {
  readonly id: string;
  readonly username: string;
  readonly password: string;
}

/** An app as its developer knows it. */
export interface TestApp {
  readonly id: string;
  /** "" for a public app. */
  readonly secret: string;
  readonly url: string;
  /** The app's URL followed by "/cb". */
  readonly redirectUri: string;
}

/** What the token endpoint returns with 200. */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
}

export interface GatepostOptions {
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** An existing data folder, as after a restart; without it a folder is made, and removed. */
  readonly folder?: string;
  /** A program to start instead of the server's source. */
  readonly entry?: string;
  /** Flags of Node. */
  readonly nodeFlags?: readonly string[];
}

/** A running server with its administrator at hand. */
export interface Gatepost {
  readonly server: RunningServer;
  /** The address for requests: its listening address and its base path. */
  readonly url: string;
  /** The base URL, as it is in tokens. */
  readonly issuer: string;
  /** An access token with scope `backend`. */
  readonly adminToken: string;
  /** A client whose cookies do not matter; each request comes from an address of its own. */
  readonly api: Client;
  /** A browser of its own; each request comes from an address of its own. */
  openBrowser(): Client;
  createUser(more?: { readonly scopes?: readonly string[] }): Promise<TestUser>;
  /** A confidential app with scope `consumer` at https://app.example; `more` replaces members. */
  createApp(more?: Readonly<Record<string, unknown>>): Promise<TestApp>;
  /** PATCH of a user or an app; anything but 200 fails the test. */
  change(party: TestUser | TestApp, fields: Readonly<Record<string, unknown>>): Promise<void>;
  login(user: TestUser): Promise<string>;
  /** POST /consumer/login from `address`, or from one of its own. */
  tryLogin(user: Credentials, address?: string): Promise<ClientResponse>;
  /** POST to the token endpoint; the app authenticates by Basic, a public app by its id. */
  token(app: TestApp, fields: Fields): Promise<ClientResponse>;
  /** The token endpoint's response to an app's refresh token. */
  refresh(app: TestApp, refreshToken: string, more?: Fields): Promise<ClientResponse>;
  /** The tokens by a user's password, for an app that may use the password grant. */
  passwordTokens(app: TestApp, user: TestUser, more?: Fields): Promise<TokenResponse>;
  /** GET of the authorize page with the app's id and redirect URI beside `parameters`. */
  authorize(browser: Client, app: TestApp, parameters?: Fields): Promise<ClientResponse>;
  /** Logs in and allows the app on the pages; returns the callback address. */
  allow(browser: Client, app: TestApp, user: TestUser, parameters?: Fields): Promise<URL>;
  /** A new browser in which a user has logged in, for an app that asks for no consent. */
  openLoggedIn(app: TestApp, user: TestUser): Promise<Client>;
  /** A code for the app, by `allow` in a new browser. */
  code(app: TestApp, user: TestUser, parameters?: Fields): Promise<string>;
  /** The tokens for a new code. */
  codeTokens(app: TestApp, user: TestUser, parameters?: Fields): Promise<TokenResponse>;
  /** Whether an access token opens a protected endpoint: 200, else 401. */
  isAlive(accessToken: string): Promise<boolean>;
  /** Waits until an access token is refused; fails later than a second after `fromMs`. */
  assertDies(accessToken: string, fromMs: number): Promise<void>;
  stop(): Promise<void>;
}

/** Starts a server and logs its administrator in. */
export async function startGatepost(options: GatepostOptions = {}): Promise<Gatepost> {
  const server = await startServer({
    entry: SOURCE_ENTRY,
    ...options,
    env: {
      GATEPOST_ADMIN_PASSWORD: PASSWORD,
      // Requests come from many addresses, so that failures in one test throttle no other test.
      GATEPOST_TRUSTED_PROXIES: "127.0.0.1",
      ...options.env,
    },
  });
  const issuer = options.env?.["GATEPOST_BASE_URL"] ?? server.url;
  const url = server.url + new URL(issuer).pathname.replace(/\/$/, "");
  const openBrowser = () =>
    createClient(url, { headers: () => ({ "x-forwarded-for": newAddress() }) });
  const api = openBrowser();

  function tryLogin({ username, password }: Credentials, address = newAddress()) {
    const headers = { "x-forwarded-for": address };
    return api.postJson("/consumer/login", { username, password }, headers);
  }

  async function login(user: Credentials): Promise<string> {
    const response = await tryLogin(user);
    assert.equal(response.status, 200, response.text);
    const { token }: { token: string } = JSON.parse(response.text);
    return token;
  }

  const adminToken = await login({ username: "admin", password: PASSWORD });
  const asAdmin = bearer(adminToken);

  const gatepost: Gatepost = {
    server,
    url,
    issuer,
    adminToken,
    api,
    openBrowser,
    login,
    tryLogin,
    async createUser({ scopes = ["consumer"] } = {}) {
      const user = { username: newName("user"), password: PASSWORD };
      const response = await api.postJson("/backend/user", { ...user, scopes }, asAdmin);
      assert.equal(response.status, 201, response.text);
      const { id }: { id: string } = JSON.parse(response.text);
      return { id, ...user };
    },
    async createApp(more = {}) {
      const fields = { name: newName("App"), url: "https://app.example", ...more };
      const response = await api.postJson("/backend/app", fields, asAdmin);
      assert.equal(response.status, 201, response.text);
      const record: { client_id: string; client_secret?: string; url: string } =
        JSON.parse(response.text);
      return {
        id: record.client_id,
        secret: record.client_secret ?? "",
        url: record.url,
        redirectUri: `${record.url.replace(/\/$/, "")}/cb`,
      };
    },
    async change(party, fields) {
      const path = "username" in party ? `/backend/user/${party.id}` : `/backend/app/${party.id}`;
      const response = await api.sendJson("PATCH", path, fields, asAdmin);
      assert.equal(response.status, 200, response.text);
    },
    token: (app, fields) =>
      app.secret === ""
        ? api.postForm("/authorization/token", { client_id: app.id, ...fields })
        : api.postForm("/authorization/token", fields, basicAuth(app)),
    refresh: (app, refreshToken, more = {}) =>
      gatepost.token(app, {
        grant_type: "refresh_token",
        refresh_token: refreshToken,
        ...more,
      }),
    async passwordTokens(app, { username, password }, more = {}) {
      const fields = { grant_type: "password", username, password, ...more };
      return readTokens(await gatepost.token(app, fields));
    },
    authorize: (browser, app, parameters = {}) =>
      browser.get(authorizePath(app, parameters)),
    async allow(browser, app, user, parameters = {}) {
      let page = await gatepost.authorize(browser, app, parameters);
      for (let steps = 0; steps < 4; steps++) {
        if (page.status === 303 && page.location !== undefined) {
          if (!page.location.startsWith(url)) return new URL(page.location);
          page = await browser.follow(page);
        } else if (page.forms()[0]?.inputs.some(({ name }) => name === "password")) {
          const { username, password } = user;
          page = await browser.submit(page, { username, password });
        } else {
          page = await browser.submit(page, {}, "allow");
        }
      }
      throw new Error(`no way back to the app: ${page.status}\n${page.text}`);
    },
    async openLoggedIn(app, user) {
      const browser = openBrowser();
      await gatepost.allow(browser, app, user);
      return browser;
    },
    async code(app, user, parameters = {}) {
      const callback = await gatepost.allow(openBrowser(), app, user, parameters);
      const code = callback.searchParams.get("code");
      assert.ok(code !== null, callback.href);
      return code;
    },
    async codeTokens(app, user, parameters = {}) {
      const pair = newPkce();
      const code = await gatepost.code(app, user, { ...pair.challenge, ...parameters });
      const fields = { grant_type: "authorization_code", code, ...pair.verifier };
      return readTokens(await gatepost.token(app, fields));
    },
    async isAlive(accessToken) {
      const response = await api.get("/authorization/whoami", bearer(accessToken));
      assert.ok(response.status === 200 || response.status === 401, response.text);
      return response.status === 200;
    },
    async assertDies(accessToken, fromMs) {
      while (await gatepost.isAlive(accessToken)) {
        assert.ok(performance.now() - fromMs < 1000, "the token still opens a protected endpoint");
        await sleep(20);
      }
    },
    async stop() {
      assert.equal(await server.stop(), 0, server.stderr());
    },
  };
  return gatepost;
}

/**
 * Waits until a process refuses an access token that another process has revoked. One second is
 * promised; the second one is for a busy machine.
 */
export async function waitUntilDead(at: Gatepost, accessToken: string): Promise<void> {
  const endMs = performance.now() + 2000;
  while (await at.isAlive(accessToken)) {
    assert.ok(performance.now() < endMs, "the token is still alive");
    await sleep(50);
  }
}
