import { statSync } from "node:fs";
import { listeningUrl } from "../base/base_url.ts";
import type { Config } from "../config.ts";
import type { Database } from "../database/database.ts";
import type { DatabaseState } from "../database/judge.ts";
import { DEFAULT_LIMITS } from "../http/limits.ts";
import { isLoopbackHost } from "../oauth/redirect_uri.ts";
import { listUnlistedApps } from "../store/apps.ts";
import { listActiveIssuers } from "../store/issuers.ts";

/** The descriptors of files, listeners and threads, besides connections and callbacks. */
const OTHER_FILES = 100;

/**
 * Returns what is allowed but risky in the configuration, a line each. The lines are logged as
 * warnings at the start and shown by `gatepost check`. `openFiles` is the descriptor limit.
 */
export function findRisks(config: Config, openFiles = readOpenFilesLimit()): string[] {
  const { console: place } = config;
  const consoleUrl = typeof place === "object" && new URL(listeningUrl(place.host, place.port));
  const baseUrl = config.baseUrl ?? listeningUrl(config.host, config.port);
  const { protocol, hostname } = new URL(baseUrl);
  const connections = (consoleUrl ? 2 : 1) * DEFAULT_LIMITS.maxConnections; // of each listener
  const files = connections + 2 * config.callbackConcurrency + OTHER_FILES;
  const risks = [
    protocol === "http:" && !isLoopbackHost(hostname) &&
    `GATEPOST_BASE_URL: ${baseUrl} is http: passwords and tokens cross the network unencrypted`,
    consoleUrl && !isLoopbackHost(consoleUrl.hostname) &&
    `GATEPOST_CONSOLE: ${consoleUrl.origin} is http: tokens cross the network unencrypted, and ` +
    "browsers run the console only over https or on their own machine",
    protocol === "https:" && config.trustedProxies.length === 0 &&
    "GATEPOST_TRUSTED_PROXIES: none, though GATEPOST_BASE_URL is https: all clients behind a " +
    "proxy count as one address, and one of them can use up the throttles of all",
    config.secretKeys === undefined &&
    "GATEPOST_SECRET_KEY: not set, or empty: private keys and signing secrets are not encrypted",
    findDatabaseRisk(config.database),
    openFiles < files &&
    `ulimit -n: ${openFiles} open files are too few for ${connections} ` +
    `connections and ${config.callbackConcurrency} callbacks; ${files} are enough`,
  ];
  return risks.filter((risk) => risk !== false);
}

/** Returns the risks in stored data: apps that the profile refuses, and that no token is valid. */
export async function findStoredRisks(
  { profile, authorizationServer }: Config,
  database: Pick<Database, "query">,
): Promise<string[]> {
  const apps = profile === "none" ? [] : await listUnlistedApps(database);
  const refusesAllTokens = !authorizationServer && (await listActiveIssuers(database)).length === 0;
  return [
    ...refusesAllTokens
      ? ["GATEPOST_AUTHORIZATION_SERVER: off, and no issuer is active: every token is refused"]
      : [],
    ...apps.map(({ id }) =>
      `GATEPOST_PROFILE: ${profile} refuses the sign-ins of app ${id}, which lists no redirect_uris`
    ),
  ];
}

/** Returns the risks in the state of the database, such as a node that is down. */
export function databaseRisks({ warnings = [] }: Pick<DatabaseState, "warnings">): string[] {
  return warnings.map((warning) => `GATEPOST_DATABASE: ${warning}`);
}

function findDatabaseRisk(database: Config["database"]): string | false {
  if (database.kind === "rqlite") {
    const isReadable = !database.isTls &&
      database.nodes.some((node) => !isLoopbackHost(new URL(`http://${node}`).hostname));
    return isReadable && "GATEPOST_DATABASE: rqlite:// is not encrypted: stored data and " +
      "credentials cross the network readable; use rqlites://";
  }
  const mode = modeOf(database.path);
  return (mode & 0o044) !== 0 &&
    `GATEPOST_DATABASE: other users of this machine may read ${database.path} ` +
      `(mode ${mode.toString(8)}): chmod 600`;
}

/** Returns a file's mode; 0 if there is no readable file, which `judge` reports. */
function modeOf(path: string): number {
  try {
    const found = statSync(path);
    return found.isFile() ? found.mode & 0o777 : 0;
  } catch {
    return 0;
  }
}

/** Infinity if the system names no limit. Node's report works without permission to read files. */
function readOpenFilesLimit(): number {
  const { userLimits }: { userLimits?: { open_files?: { soft?: unknown } } } =
    process.report.getReport();
  const soft = Number(userLimits?.open_files?.soft); // or "unlimited"
  return Number.isNaN(soft) ? Infinity : soft;
}
