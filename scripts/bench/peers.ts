import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { createJwtSigner, generatePrivateKey, importKey } from "../../src/base/jwt.ts";
import type { BenchApp } from "./gatepost.ts";
import { endWithParent } from "./post_process.ts";
import { type ServerProcess, startProcess } from "./processes.ts";

/** What a user would choose instead of Gatepost, by major version. */
const PACKAGES = {
  "oidc-provider": 9,
  fastify: 5,
  "@fastify/jwt": 10,
  bullmq: 6,
  ioredis: 5,
} as const;

const TOKEN_TTL_SECONDS = 3600;

/** Installs the peers into a folder outside of the tree; throws if npm fails. */
export async function installPeers(folder: string): Promise<void> {
  const names = Object.entries(PACKAGES).map(([name, major]) => `${name}@${major}`);
  const flags = ["--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"];
  const npm = endWithParent(spawn("npm", ["install", "--prefix", folder, ...flags, ...names], {
    cwd: folder,
    stdio: ["ignore", "ignore", "inherit"],
  }));
  const [code] = await once(npm, "exit");
  if (code !== 0) throw new Error("npm could not install the peers");
}

/** The versions of the installed peers. */
export function peerVersions(folder: string): Readonly<Record<string, string>> {
  const versionOf = (name: string): string => {
    const path = join(folder, "node_modules", name, "package.json");
    const { version }: { version: string } = JSON.parse(readFileSync(path, "utf8"));
    return version;
  };
  return Object.fromEntries(Object.keys(PACKAGES).map((name) => [name, versionOf(name)]));
}

/** Imports an installed peer; the caller is responsible for its type. */
export async function importPeer<Module>(folder: string, name: string): Promise<Module> {
  const path = createRequire(join(folder, "package.json")).resolve(name);
  return await import(pathToFileURL(path).href) as Module;
}

/** node-oidc-provider, with the same app. */
export function startOidcProvider(folder: string, app: BenchApp): Promise<ServerProcess> {
  return startPeer("peer_oidc_provider.ts", folder, app.id, app.secret);
}

/** fastify with @fastify/jwt: one protected GET, and a token that it accepts. */
export async function startFastify(
  folder: string,
  body: string,
  isCached: boolean,
): Promise<{ readonly server: ServerProcess; readonly token: string }> {
  const key = importKey("bench", "ES256", await generatePrivateKey("ES256"));
  const iat = Math.floor(Date.now() / 1000);
  const claims = { sub: "bench", iat, exp: iat + TOKEN_TTL_SECONDS, scope: "consumer orders" };
  const publicPem = String(key.publicKey.export({ format: "pem", type: "spki" }));
  const cached = isCached ? "cached" : "";
  const server = await startPeer("peer_fastify.ts", folder, publicPem, body, cached);
  return { server, token: createJwtSigner("JWT", key)(claims) };
}

function startPeer(program: string, ...args: readonly string[]): Promise<ServerProcess> {
  return startProcess([join(import.meta.dirname, program), ...args], { NODE_ENV: "production" });
}
