import assert from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { createClient } from "../helpers/http_client.ts";
import { type RunningServer, type ServerOptions, startServer } from "../helpers/process.ts";
import { type Receiver, type ReceiverOptions, startReceiver } from "../helpers/receiver.ts";

/** An app that the tests sign in to; a public app has no secret. */
export interface StageApp {
  readonly clientId: string;
  readonly clientSecret: string | undefined;
  /** Its callback address, below the app's URL. */
  readonly redirectUri: string;
}

export interface StageOptions {
  readonly env?: ServerOptions["env"];
  readonly app?: ReceiverOptions;
  /** The path of GATEPOST_BASE_URL. */
  readonly basePath?: string;
}

/** A server with users and apps, and another site's origin, where the apps are. */
export interface Stage {
  readonly server: RunningServer;
  /** Returns a page of its own for each callback address. */
  readonly appSite: Receiver;
  /** The apps' origin, "http://localhost:40000": not the same site as the server's 127.0.0.1. */
  readonly appOrigin: string;
  /** Adds a user and returns the password. */
  addUser(username: string, scopes: readonly string[]): Promise<string>;
  /** Adds an app at `/<path>/` of the app's origin. */
  addApp(path: string, fields?: Readonly<Record<string, unknown>>): Promise<StageApp>;
  close(): Promise<void>;
}

const ENTRY = fileURLToPath(new URL("../../src/server.ts", import.meta.url));
const ADMIN_PASSWORD = "the-keeper-of-the-stage";

/** Starts the server, from its sources, and the apps' origin. */
export async function openStage(options: StageOptions = {}): Promise<Stage> {
  const appSite = await startReceiver(options.app);
  const server = await startServer({
    entry: ENTRY,
    env: { GATEPOST_ADMIN_PASSWORD: ADMIN_PASSWORD, ...options.env },
  }).catch(async (error: unknown) => {
    await appSite.close();
    throw error;
  });
  const client = createClient(server.url + (options.basePath ?? ""));
  const login = await client.postJson("/consumer/login", {
    username: "admin",
    password: ADMIN_PASSWORD,
  });
  const authorization = `Bearer ${memberOf(login.json(), "token")}`;
  const appOrigin = appSite.url.replace("127.0.0.1", "localhost");

  const add = async (path: string, body: object): Promise<unknown> => {
    const response = await client.postJson(path, body, { authorization });
    assert.equal(response.status, 201, response.text);
    return response.json();
  };

  return {
    server,
    appSite,
    appOrigin,
    async addUser(username, scopes) {
      const password = `${username} has a long password`;
      await add("/backend/user", { username, password, scopes });
      return password;
    },
    async addApp(path, fields = {}) {
      const url = `${appOrigin}/${path}/`;
      const redirectUri = `${url}callback`;
      appSite.react(new URL(redirectUri).pathname, {
        kind: "answer",
        status: 200,
        headers: { "content-type": "text/html; charset=utf-8" },
        body: `<!doctype html><html lang=en><title>${path}</title><link rel=icon href=data:,>back`,
      });
      const app = await add("/backend/app", { name: path, url, scopes: ["consumer"], ...fields });
      const clientSecret = memberOf(app, "client_secret");
      return {
        clientId: memberOf(app, "client_id"),
        clientSecret: clientSecret === "" ? undefined : clientSecret,
        redirectUri,
      };
    },
    async close() {
      await server.stop();
      await appSite.close();
    },
  };
}

/** A text member of an object, "" if there is none. */
export function memberOf(value: unknown, name: string): string {
  if (typeof value !== "object" || value === null) return "";
  const found: unknown = Object.entries(value).find(([key]) => key === name)?.[1];
  return typeof found === "string" ? found : "";
}

/** The address of an authorization request. */
export function authorizeAddress(
  base: string,
  app: StageApp,
  more: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams({
    response_type: "code",
    client_id: app.clientId,
    redirect_uri: app.redirectUri,
    ...more,
  });
  return `${base}/authorization/authorize?${query}`;
}
