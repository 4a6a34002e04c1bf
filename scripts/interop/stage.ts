import { randomBytes, webcrypto } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createBrowser, type Visit, type Visitor } from "./browser.ts";
import type { AppLogin, ClientAuth, KeyedApp, Members } from "./client.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { createCertificate } from "../../test/helpers/certificate.ts";
import { startServer } from "../../test/helpers/process.ts";
import { DEVICE_GRANT } from "../../src/oauth/grant_type.ts";
import { startReceiver as startDocuments } from "../../test/helpers/receiver.ts";
import { findFreePort } from "../free_port.ts";

/** What a stage's server is started with. */
export interface StageSetup {
  readonly name: string;
  readonly signingAlg: "ES256" | "RS256" | "EdDSA";
  /** The path of the base URL; "" for none. */
  readonly path: string;
}

/** A running server with a user, two apps and a subscriber's endpoint. */
export interface Stage extends StageSetup {
  /** The base URL. */
  readonly issuer: string;
  /** A protected address that returns whose token it was given. */
  readonly whoami: string;
  /** A hosted endpoint that needs every scope of the user. */
  readonly mcp: string;
  /** The address of an endpoint of the server. */
  endpoint(name: "authorize" | "token" | "revoke" | "introspect"): string;
  readonly user: Visitor & { readonly id: string };
  readonly redirectUri: string;
  /** The Client ID Metadata Document of an app that is not registered. */
  readonly documentUrl: string;
  readonly receiver: Receiver;
  /** The app that authenticates in this way. */
  app(auth: ClientAuth): AppLogin;
  /** The app that authenticates with a key. */
  readonly keyedApp: KeyedApp;
  /** Goes through the server's pages as the user; see createBrowser(). */
  readonly visit: Visit;
  /** The caller that a token names; undefined if the server refuses the token. */
  caller(accessToken: string): Promise<Members | undefined>;
  /** Calls the server's own interface as the user or as the administrator. */
  post(as: "user" | "admin", path: string, body?: object): Promise<Members>;
  close(): Promise<void>;
}

const SCOPES = ["consumer", "orders"];
const APP_URL = "https://app.example/";
const REDIRECT_URI = `${APP_URL}callback`;
const TIMEOUT_MS = 10_000;
const MODULE = `export const mcp = {
  method: "POST",
  path: "/mcp",
  scope: ${JSON.stringify(SCOPES)},
  handle: ({ body }) => ({ jsonrpc: "2.0", id: body.id, result: {} }),
};
`;

/** Starts a server with its data in `folder`, and puts everything in place. */
export async function openStage(setup: StageSetup, folder: string): Promise<Stage> {
  const data = join(folder, setup.name);
  const endpoints = join(data, "endpoints");
  await mkdir(endpoints, { recursive: true });
  await writeFile(join(endpoints, "mcp.mjs"), MODULE);
  const port = setup.path === "" ? 0 : await findFreePort();
  const tls = createCertificate();
  const authority = join(data, "authority.pem");
  await writeFile(authority, tls.ca);
  const adminPassword = randomBytes(16).toString("hex");
  const env = {
    GATEPOST_PORT: String(port),
    GATEPOST_ADMIN_PASSWORD: adminPassword,
    GATEPOST_SIGNING_ALG: setup.signingAlg,
    GATEPOST_ENDPOINTS: endpoints,
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    GATEPOST_CLIENT_METADATA: "on",
    NODE_EXTRA_CA_CERTS: authority,
    ...(port !== 0 && { GATEPOST_BASE_URL: `http://127.0.0.1:${port}${setup.path}` }),
  };
  const server = await startServer({ env, folder: data });
  const issuer = port === 0 ? server.url : `http://127.0.0.1:${port}${setup.path}`;
  const receiver = await startReceiver();
  const documents = await startDocuments({ tls });
  const documentUrl = `${documents.url}/client.json`;
  const body = JSON.stringify({ client_id: documentUrl, redirect_uris: [REDIRECT_URI] });
  documents.react("/client.json", { kind: "answer", status: 200, body });
  const close = async () => {
    await receiver.close();
    await documents.close();
    const code = await server.stop();
    if (code !== 0) throw new Error(`the server of stage ${setup.name} exited with ${code}`);
  };
  try {
    const furnished = await furnish(issuer, adminPassword);
    return { ...setup, issuer, receiver, documentUrl, close, ...furnished };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes the user and the apps through the backend. */
async function furnish(issuer: string, adminPassword: string) {
  const tokens = new Map<string, string>();

  async function post(as: string, path: string, body: object = {}): Promise<Members> {
    const token = tokens.get(as);
    const response = await fetch(issuer + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        ...(token !== undefined && { authorization: `Bearer ${token}` }),
      },
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(TIMEOUT_MS),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`POST ${path} answered ${response.status}: ${text}`);
    const members: Members = JSON.parse(text);
    return members;
  }
  async function logIn(as: string, username: string, password: string): Promise<void> {
    const { token } = await post("nobody", "/consumer/login", { username, password });
    tokens.set(as, String(token));
  }
  async function addApp(name: string, more: object): Promise<Members> {
    return post("admin", "/backend/app", { name, url: APP_URL, scopes: SCOPES, ...more });
  }

  await logIn("admin", "admin", adminPassword);
  const user = { username: "ada", password: "grün, the 2nd & last = 100 %+" };
  const { id } = await post("admin", "/backend/user", { ...user, scopes: SCOPES });
  await logIn("user", user.username, user.password);
  const confidential = await addApp("Back office", {
    grants: [
      "authorization_code",
      "refresh_token",
      "client_credentials",
      "password",
      DEVICE_GRANT,
    ],
  });
  const publicApp = await addApp("Web page", {
    type: "public",
    grants: ["authorization_code", "refresh_token", DEVICE_GRANT],
  });

  const { privateKey: key, publicKey } = await webcrypto.subtle.generateKey(
    { name: "ECDSA", namedCurve: "P-256" }, false, ["sign", "verify"],
  );
  const kid = "robot";
  const jwk = { ...await webcrypto.subtle.exportKey("jwk", publicKey), kid };
  const keyed = await addApp("Robot", { jwks: { keys: [jwk] } });

  return {
    keyedApp: { id: String(keyed["client_id"]), kid, key },
    user: { ...user, id: String(id) },
    whoami: `${issuer}/authorization/whoami`,
    mcp: `${issuer}/mcp`,
    endpoint: (name: string) => `${issuer}/authorization/${name}`,
    redirectUri: REDIRECT_URI,
    visit: createBrowser(user),
    post,
    app(auth: ClientAuth): AppLogin {
      if (auth === "none") return { id: String(publicApp["client_id"]), secret: "", auth };
      const { client_id, client_secret } = confidential;
      return { id: String(client_id), secret: String(client_secret), auth };
    },
    async caller(accessToken: string): Promise<Members | undefined> {
      const response = await fetch(`${issuer}/authorization/whoami`, {
        headers: { authorization: `Bearer ${accessToken}` },
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      const body: Members = JSON.parse(await response.text());
      return response.status === 200 ? body : undefined;
    },
  };
}
