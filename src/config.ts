import { readFileSync, statSync } from "node:fs";
import { isWildcardHost } from "./base/base_url.ts";
import { DATABASE_ADDRESS } from "./base/database_address.ts";
import {
  choice,
  duration,
  type Environment,
  list,
  optional,
  quote,
  type ReadText,
  secret,
  size,
  type ValueOf,
  type Variable,
  variable,
  wholeNumber,
} from "./base/env.ts";
import { SIGNING_ALGORITHMS } from "./base/jwt.ts";
import { LOG_LEVELS } from "./base/log.ts";
import { decodeText } from "./base/utf8.ts";
import {
  baseUrl,
  cidrs,
  consolePlace,
  credentials,
  displayName,
  documentHosts,
  folderPath,
  host,
  metricsToken,
  onOff,
  origins,
  password,
  port,
  rateOrNone,
  secretKeys,
} from "./config_kinds.ts";
import { PROFILES } from "./oauth/profile.ts";

const OURS = /^(.*\W)?GATEPOST_/s;

// Set by the build, and by Docker and Kubernetes for services whose name begins with gatepost.
const NOT_OURS =
  /^GATEPOST_(REVISION|(\w+_)?(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_\w+))=|_PORT=[tus]\w+p:/;

/**
 * All that an operator may decide, in the order of the documents: the member of the configuration,
 * its variable and its default. Times are in milliseconds, sizes in bytes.
 */
const TABLE = {
  host: variable("GATEPOST_HOST", host, "127.0.0.1", "address to listen on"),
  port: variable("GATEPOST_PORT", port, 8_080, "port; 0 takes a free one"),
  sharePort: variable("GATEPOST_SHARE_PORT", onOff, false,
    "on or off; on: several processes of this machine listen on the port, for rolling restarts"),
  baseUrl: optional("GATEPOST_BASE_URL", baseUrl, "http://HOST:PORT as listened on",
    "public URL, which is the issuer of tokens; its path prefixes every route; required if " +
    "GATEPOST_HOST is a wildcard address"),
  database: variable("GATEPOST_DATABASE", DATABASE_ADDRESS,
    { kind: "file", path: "./data/gatepost.db" },
    "SQLite file, created with its folder; or the nodes of an rqlite cluster, " +
    "rqlite://HOST:PORT,HOST:PORT,HOST:PORT, or rqlites:// if they use TLS"),
  databaseCredentials: secret("GATEPOST_DATABASE_CREDENTIALS", credentials,
    "user:password for rqlite"),
  name: optional("GATEPOST_NAME", displayName, "host of GATEPOST_BASE_URL",
    "name of the service in its pages and their titles"),
  console: variable("GATEPOST_CONSOLE", consolePlace, "on",
    "on, off, or HOST:PORT: a listener, and so an origin, of its own for the console"),
  endpointsFolder: optional("GATEPOST_ENDPOINTS", folderPath, "none", "folder of endpoint modules"),
  cron: variable("GATEPOST_CRON", onOff, true,
    "on or off; off: no background job runs and dispatched events stay pending"),
  distributeIntervalMs: variable("GATEPOST_DISTRIBUTE_INTERVAL", duration("10ms", "1h"), 1_000,
    "how often the distributor looks for work"),
  resendDelaysMs: variable("GATEPOST_RESEND_DELAYS", list(duration("0s", "30d"), 3),
    [10_000, 300_000, 3_600_000],
    "wait before each resend; as many entries as resends, up to 3; none: nothing is sent again"),
  callbackTimeoutMs: variable("GATEPOST_CALLBACK_TIMEOUT", duration("10ms", "10m"), 10_000,
    "limit for a whole callback, its response included"),
  callbackConcurrency: variable("GATEPOST_CALLBACK_CONCURRENCY", wholeNumber(1, 1_000), 64,
    "callbacks in flight in total"),
  callbackConcurrencyPerSubscription: variable("GATEPOST_CALLBACK_CONCURRENCY_PER_SUBSCRIPTION",
    wholeNumber(1, 1_000), 8, "callbacks in flight for one subscription"),
  callbackAllow: variable("GATEPOST_CALLBACK_ALLOW", cidrs, [],
    "CIDRs, not public, that callbacks and fetches of clients' and issuers' documents may reach"),
  accessTokenTtlMs: variable("GATEPOST_ACCESS_TOKEN_TTL", duration("1s", "30d", 1_000), 3_600_000,
    "lifetime of an access token"),
  refreshTokenTtlMs: variable("GATEPOST_REFRESH_TOKEN_TTL", duration("1s", "3650d", 1_000),
    2_592_000_000, "lifetime of a refresh token, counted from its own issue"),
  // RFC 6749 §4.1.2: a code lives ten minutes at most.
  codeTtlMs: variable("GATEPOST_CODE_TTL", duration("1s", "10m", 1_000), 60_000,
    "lifetime of an authorization code"),
  signingAlg: variable("GATEPOST_SIGNING_ALG", choice(SIGNING_ALGORITHMS), "ES256",
    "algorithm of new keys: ES256, RS256 or EdDSA"),
  profile: variable("GATEPOST_PROFILE", choice(PROFILES), "none",
    "none, or 2.1 (OAuth 2.1): PKCE and listed redirect_uris of every app, and no password grant"),
  authorizationServer: variable("GATEPOST_AUTHORIZATION_SERVER", onOff, true,
    "on or off; off: nobody logs in here, and only tokens of registered issuers are accepted"),
  clientMetadata: variable("GATEPOST_CLIENT_METADATA", documentHosts, "off",
    "off, on, or hosts: whether unregistered apps may describe themselves by a Client ID " +
    "Metadata Document, at any host or at these"),
  secretKeys: secret("GATEPOST_SECRET_KEY", secretKeys,
    "32 bytes in base64 that encrypt private keys and subscription secrets at rest; of several " +
    "keys, separated by commas, the first encrypts and all decrypt"),
  trustedProxies: variable("GATEPOST_TRUSTED_PROXIES", cidrs, [],
    "CIDRs whose X-Forwarded-For is believed"),
  corsOrigins: variable("GATEPOST_CORS_ORIGINS", origins, [],
    "origins that browsers may call from, besides those of registered apps"),
  rateLimit: variable("GATEPOST_RATE_LIMIT", rateOrNone, undefined,
    "how often a user or app without a rate of its own may call, and a client address without a " +
    "token; counted by each process for itself"),
  maxBodyBytes: variable("GATEPOST_MAX_BODY", size("1KiB", "256MiB"), 1_048_576,
    "largest request body; forms are capped at 64KiB"),
  maxPayloadBytes: variable("GATEPOST_MAX_PAYLOAD", size("1KiB", "64MiB"), 262_144,
    "largest JSON of one event"),
  retentionMs: variable("GATEPOST_RETENTION", duration("1s", "3650d"), 2_592_000_000,
    "how long finished events, deliveries and attempts are kept; the audit is kept for 90 days"),
  disableAfterMs: variable("GATEPOST_DISABLE_AFTER", duration("0s", "3650d"), 432_000_000,
    "a subscription whose deliveries have all failed for this long is disabled; 0 = never"),
  metricsToken: secret("GATEPOST_METRICS_TOKEN", metricsToken,
    "bearer token that may read /system/metrics and all of /system/ready, as scope backend may"),
  logLevel: variable("GATEPOST_LOG_LEVEL", choice(LOG_LEVELS), "info",
    "debug, info, warn or error"),
  adminPassword: secret("GATEPOST_ADMIN_PASSWORD", password,
    "password of user admin on a database without users; otherwise one is generated"),
};

const VARIABLES_BY_KEY: readonly [key: string, variable: Variable<unknown>][] =
  Object.entries(TABLE);

/** A value for each variable. */
export type Config = { readonly [K in keyof typeof TABLE]: ValueOf<(typeof TABLE)[K]> };

/** Every variable, for documents: name, default and meaning as text. */
export const VARIABLES = VARIABLES_BY_KEY.map(([, variable]) => variable);

/**
 * Parses the environment to a configuration, or to all errors at once. An error is a line that
 * names the variable, says what is wrong and what would be right, and holds no secret.
 */
export function parseConfig(env: Environment, readText: ReadText = readSecret) {
  const errors: string[] = [];
  // The cast is needed because Object.entries loses which type belongs to which key.
  const config = Object.fromEntries(
    VARIABLES_BY_KEY.map(([key, variable]) => [key, variable.read(env, errors, readText)]),
  ) as Config;
  if (isWildcardHost(config.host) && !env[TABLE.baseUrl.name]) {
    errors.push(
      `${TABLE.baseUrl.name}: is required, since ${TABLE.host.name} ${config.host} listens on ` +
        "every address; set it to the public one, such as https://api.example.com",
    );
  }
  const { host, port, console, sharePort } = config;
  // If two listeners share a port, the system gives each connection to either of them.
  const isShared = port !== 0 && typeof console === "object" && console.port === port &&
    (sharePort || console.host === host);
  if (isShared) errors.push(`${TABLE.console.name}: needs a port of its own; write that, or on`);
  errors.push(...findUnknown(env));
  return errors.length === 0 ? { ok: true, config } as const : { ok: false, errors } as const;
}

/** Reads the file that a variable NAME_FILE names; throws if that is impossible. */
export function readSecret(path: string): string {
  const found = statSync(path);
  if (found.isCharacterDevice()) throw new Error(`${path} is a device`); // without an end
  // Without a writer. Pipes of the shell, which have one, are in /dev/fd, /dev/stdin or /proc.
  const isNamed = !/^\/(dev|proc)\//.test(path);
  if (found.isFIFO() && isNamed) throw new Error(`${path} is a named pipe`);
  const text = decodeText(readFileSync(path));
  if (text === undefined) throw new Error(`${path} is not UTF-8`);
  return text;
}

/** Returns the effective value of each variable as text; for a secret, only whether it is set. */
export function describeConfig(config: Config): readonly { name: string; value: string }[] {
  const values: Readonly<Record<string, unknown>> = config;
  return VARIABLES_BY_KEY.map(([key, { name, describe }]) =>
    ({ name, value: describe(values[key]) })
  );
}

/**
 * Returns a line for each unknown GATEPOST_… variable, most likely a misspelling, without its
 * value, which may be a secret. A wrongly written environment file may leave a byte order mark or a
 * word such as `export` before the name.
 */
function findUnknown(env: Environment): string[] {
  const known = VARIABLES.flatMap(({ name, fileName }) => fileName ? [name, fileName] : [name]);
  return Object.keys(env)
    .filter((name) => OURS.test(name) && env[name])
    .filter((name) => !known.includes(name) && !NOT_OURS.test(`${name}=${env[name]}`))
    .map((name) => `${/^\w{1,80}$/.test(name) ? name : quote(name)}: no such variable`);
}
