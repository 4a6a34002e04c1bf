import { join } from "node:path";
import { MEMORY_ENV, MEMORY_FLAGS } from "../../src/cli/serve.ts";
import { type ServerProcess, startProcess } from "./processes.ts";

/** The built server with an app and its administrator, as an operator would set it up. */
export interface BenchGatepost extends ServerProcess {
  readonly databasePath: string;
  /** The user id of `admin`, and a token with its scopes. */
  readonly admin: { readonly id: string; readonly token: string };
  readonly app: BenchApp;
  /** POST of JSON with the administrator's token; throws unless the response is 2xx. */
  post(path: string, body: object, token?: string): Promise<Readonly<Record<string, unknown>>>;
  /** A client_credentials token of the app. */
  appToken(): Promise<string>;
  /** A refresh token of the app. */
  refreshToken(): Promise<string>;
}

/** The credentials of the app. */
export interface BenchApp {
  readonly id: string;
  readonly secret: string;
  /** The value of its Authorization header. */
  readonly basic: string;
}

export interface GatepostOptions {
  readonly env?: Readonly<Record<string, string>>;
  /** Flags of Node. */
  readonly nodeFlags?: readonly string[];
  /** The app that an earlier start on the same folder has made. */
  readonly app?: BenchApp;
}

const SERVER = join(import.meta.dirname, "../../dist/server.js");
const ADMIN_PASSWORD = "measured-from-outside";

/** Starts the built server as npm start does, alone, on a database in `folder`. */
export function startServer(
  folder: string,
  { env = {}, nodeFlags = [] }: GatepostOptions = {},
): Promise<ServerProcess> {
  return startProcess([...MEMORY_FLAGS, ...nodeFlags, SERVER], {
    ...MEMORY_ENV,
    GATEPOST_PORT: "0",
    GATEPOST_DATABASE: join(folder, "gatepost.db"),
    GATEPOST_ENDPOINTS: join(import.meta.dirname, "endpoints"),
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8", // the guard is on; subscribers here are on loopback
    GATEPOST_ADMIN_PASSWORD: ADMIN_PASSWORD,
    ...env,
  });
}

/** Starts the built server and makes an app that may use every grant that is measured. */
export async function startGatepost(
  folder: string,
  options: GatepostOptions = {},
): Promise<BenchGatepost> {
  const server = await startServer(folder, options);
  try {
    return await setUp(server, join(folder, "gatepost.db"), options.app);
  } catch (error) {
    await server.stop();
    throw error;
  }
}

async function setUp(
  server: ServerProcess,
  databasePath: string,
  known: BenchApp | undefined,
): Promise<BenchGatepost> {
  const { url } = server;
  const login = { username: "admin", password: ADMIN_PASSWORD };
  const token = String((await postJson(`${url}/consumer/login`, login, ""))["token"]);
  const app = known ?? await makeApp(url, token);
  const tokens = async () => {
    const body = new URLSearchParams({ grant_type: "client_credentials" });
    const headers = { authorization: app.basic };
    const request = { method: "POST", headers, body };
    return readOk(await fetch(`${url}/authorization/token`, request));
  };
  return {
    ...server,
    databasePath,
    admin: { id: subOf(token), token },
    app,
    post: (path, body, as = token) => postJson(url + path, body, as),
    appToken: async () => String((await tokens())["access_token"]),
    refreshToken: async () => String((await tokens())["refresh_token"]),
  };
}

async function makeApp(url: string, token: string): Promise<BenchApp> {
  const made = await postJson(`${url}/backend/app`, {
    name: "Bench",
    url: "https://app.example/",
    scopes: ["consumer", "orders"],
  }, token);
  const [id, secret] = [String(made["client_id"]), String(made["client_secret"])];
  return { id, secret, basic: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}` };
}

async function postJson(url: string, body: object, token: string) {
  return readOk(await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      ...token && { authorization: `Bearer ${token}` },
    },
    body: JSON.stringify(body),
  }));
}

async function readOk(response: Response): Promise<Readonly<Record<string, unknown>>> {
  const text = await response.text();
  if (!response.ok) throw new Error(`${response.url}: ${response.status} ${text}`);
  return JSON.parse(text);
}

function subOf(token: string): string {
  const [, claims = ""] = token.split(".");
  const { sub }: { sub: string } = JSON.parse(Buffer.from(claims, "base64url").toString());
  return sub;
}
