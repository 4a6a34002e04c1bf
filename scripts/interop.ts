/**
 * Runs real OAuth clients, token verifiers and a webhook verifier against the built server, each
 * with every feature that it supports. Tools for API documents read those of the server and of a
 * shop of endpoint modules. All are installed into a scratch folder, which is removed again: they
 * are no dependencies.
 *
 *   npm run interop    prints a row for each client and a column for each feature; exit 1 with a ✗
 */
import { once } from "node:events";
import { rmSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { ClientPackage } from "./interop/client.ts";
import { ARCTIC } from "./interop/clients/arctic.ts";
import { BADGATEWAY } from "./interop/clients/badgateway.ts";
import { EXPRESS_JWT_BEARER } from "./interop/clients/express_jwt_bearer.ts";
import { JOSE } from "./interop/clients/jose.ts";
import { MCP_SDK } from "./interop/clients/mcp_sdk.ts";
import { OAUTH4WEBAPI } from "./interop/clients/oauth4webapi.ts";
import { OPENID_CLIENT } from "./interop/clients/openid_client.ts";
import { PASSPORT_OAUTH2 } from "./interop/clients/passport_oauth2.ts";
import { SIMPLE_OAUTH2 } from "./interop/clients/simple_oauth2.ts";
import { STANDARDWEBHOOKS } from "./interop/clients/standardwebhooks.ts";
import { DOCUMENT_TOOLS, tryDocuments } from "./interop/documents.ts";
import { ISSUERS, tryForeignIssuers } from "./interop/foreign_issuer.ts";
import { installPackages } from "./interop/packages.ts";
import { countOutcomes, formatReport } from "./interop/report.ts";
import { runTrials } from "./interop/run.ts";
import { tryShop } from "./interop/shop.ts";
import { readOptions } from "./read_options.ts";

const CLIENTS: readonly ClientPackage[] = [
  OAUTH4WEBAPI,
  OPENID_CLIENT,
  SIMPLE_OAUTH2,
  BADGATEWAY,
  ARCTIC,
  PASSPORT_OAUTH2,
  MCP_SDK,
  JOSE,
  EXPRESS_JWT_BEARER,
  STANDARDWEBHOOKS,
];

/** The limit of the whole run; the installation also has a limit of its own. */
const LIMIT_MS = 180_000;

readOptions({}); // it takes none

/** Installs the clients, runs the trials and prints the result; returns the exit code. */
async function main(folder: string, signal: AbortSignal): Promise<number> {
  process.stderr.write("Installing the clients into a scratch folder ...\n");
  const wanted = [...CLIENTS, ...DOCUMENT_TOOLS, ...ISSUERS]
    .map(({ name, major }) => `${name}@${major}`);
  const packages = await installPackages(folder, wanted, signal);
  const startedMs = performance.now();
  const outcomes = await runTrials(CLIENTS, packages.load, folder, signal);
  const describe = (error: unknown) => `✗ ${error instanceof Error ? error.message : error}`;
  const say = (trial: Promise<void>) => trial.then(() => "✓", describe);
  const documents = await say(tryDocuments(packages.load, folder));
  const issuers = await say(tryForeignIssuers(packages.load));
  const shop = await say(tryShop(packages.load, folder, signal));
  const seconds = (performance.now() - startedMs) / 1000;

  const names = new Map<ClientPackage, string>();
  for (const client of CLIENTS) {
    names.set(client, `${client.name} ${await packages.version(client.name)}`);
  }
  const { bad, good } = countOutcomes(outcomes);
  console.log(`${formatReport(outcomes, names)}\n`);
  console.log("✓ works   – not supported by the client   ✗ fails");
  console.log(`Documents, for ${DOCUMENT_TOOLS.map(({ name }) => name).join(", ")}: ${documents}`);
  console.log(`Foreign issuer, ${ISSUERS.map(({ name }) => name).join(" and ")}: ${issuers}`);
  console.log(`The shop, with --locked, zod and a client generator: ${shop}`);
  console.log(`${good} ✓, ${bad} ✗, ${CLIENTS.length} clients, ${seconds.toFixed(1)} s`);
  return bad === 0 && documents === "✓" && issuers === "✓" && shop === "✓" ? 0 : 1;
}

const folder = await mkdtemp(join(tmpdir(), "gatepost-interop-"));
process.once("exit", () => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }));
const interruption = new AbortController();
for (const name of ["SIGINT", "SIGTERM"]) {
  process.once(name, () => interruption.abort(new Error(`ended by ${name}`)));
}
const signal = AbortSignal.any([interruption.signal, AbortSignal.timeout(LIMIT_MS)]);
const aborted = once(signal, "abort").then((): never => {
  throw signal.reason;
});
// Whatever still runs ends with this process: servers are killed, and the folder is removed.
process.exit(
  await Promise.race([main(folder, signal), aborted]).catch((error: unknown) => {
    console.error(error instanceof Error ? error.message : error);
    return 1;
  }),
);
