import assert from "node:assert/strict";
import { type CommandLine, openCommandLine, readJson } from "./command_line.ts";
import { SOURCE_ENTRY, type TestApp } from "./gatepost.ts";
import { type ClientResponse, type Client, createClient } from "./http_client.ts";
import { type RunningServer, startServer } from "./process.ts";
import { authorizePath, bearer, newAddress } from "./requests.ts";

/** A server that nobody has signed in to, with one trusted app. */
export interface FirstStart {
  readonly server: RunningServer;
  /** The password of admin that the start has printed; "" if it has printed none. */
  readonly password: string;
  readonly cli: CommandLine;
  readonly app: TestApp;
  /** The path of the authorize page for that app. */
  readonly path: string;
  /** The address of a path at this process. */
  address(path: string): string;
  openBrowser(): Client;
  /** Signs admin in at the login page, and returns the next response. */
  signIn(browser: Client, path: string, password: string): Promise<ClientResponse>;
  /** The status of POST /consumer/login as admin. */
  tryLogin(password: string): Promise<number>;
  /** The token of such a login. */
  login(password: string): Promise<string>;
  isAlive(token: string): Promise<boolean>;
}

const BASE_URL = "http://gatepost.test";

/** Starts a server on an empty database, or on the data folder of another one. */
export async function startFirst(
  test: { after(release: () => Promise<void>): void },
  { folder, env = {} }: {
    readonly folder?: string;
    readonly env?: Readonly<Record<string, string>>;
  } = {},
): Promise<FirstStart> {
  const server = await startServer({
    entry: SOURCE_ENTRY,
    ...folder !== undefined && { folder },
    env: { GATEPOST_TRUSTED_PROXIES: "127.0.0.1", GATEPOST_BASE_URL: BASE_URL, ...env },
  });
  test.after(async () => {
    assert.equal(await server.stop(), 0, server.stderr());
  });
  const cli = await openCommandLine(test, {
    folder: server.folder,
    env: { GATEPOST_BASE_URL: BASE_URL },
  });
  const url = "https://app.example";
  const added = await cli.run("app", "add", "Desk", "--url", url, "--trusted", "--json",
    "--scope", "consumer");
  const { client_id: id, client_secret: secret } = readJson(added);
  const app = { id: String(id), secret: String(secret), url, redirectUri: `${url}/cb` };
  const openBrowser = () =>
    createClient(server.url, { headers: () => ({ "x-forwarded-for": newAddress() }) });
  const postLogin = (password: string) =>
    openBrowser().postJson("/consumer/login", { username: "admin", password });
  return {
    server,
    password: /with password (\S+)/.exec(server.stderr())?.[1] ?? "",
    cli,
    app,
    path: authorizePath(app),
    address: (path) => server.url + path,
    openBrowser,
    signIn: async (browser, path, password) => {
      const page = await browser.get(path);
      const response = await browser.submit(page, { username: "admin", password });
      return response.status === 303 ? browser.follow(response) : response;
    },
    tryLogin: async (password) => (await postLogin(password)).status,
    async login(password) {
      const { token }: { token: string } = JSON.parse((await postLogin(password)).text);
      return token;
    },
    isAlive: async (token) =>
      (await openBrowser().get("/authorization/whoami", bearer(token))).status === 200,
  };
}
