import { join } from "node:path";
import { newId } from "../../src/base/id.ts";
import { newSecret, sha256 } from "../../src/base/secret.ts";
import { newHandle } from "../../src/api/authorization/token_issuer.ts";
import { insertCode } from "../../src/store/codes.ts";
import { insertSession } from "../../src/store/sessions.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import { insertUser } from "../../src/store/users.ts";
import type { Stage } from "./bench_case.ts";
import { comparison, type Contest, loadSide, type Reference, type Side } from "./compare.ts";
import { type BenchApp, type BenchGatepost, startGatepost } from "./gatepost.ts";
import { requestBytes, runLoad } from "./http_load.ts";
import { startOidcProvider } from "./peers.ts";
import { type ServerProcess, startProcess } from "./processes.ts";

/** How many clients request tokens at once. */
export const CONNECTIONS = 64;
export const LIMIT_SERVER = join(import.meta.dirname, "limit_server.ts");

const PATH = "/authorization/token";
const CODES_A_SECOND = 6000;
const CODES_A_BATCH = 1000;
/** Enough users that none reaches the limit of grants for a user. */
const USERS = 1000;
const REDIRECT_URI = "https://app.example/callback";
const CODE_TTL_MS = 600_000;

/** Compares tokens by three grants with a server that signs the same token and stores nothing. */
export const TOKEN_CASES = [
  comparison("client-credentials", "client_credentials tokens", (stage) =>
    startTokenContest(stage, { least: 0.65, sideOf: clientCredentials, withPeers: true })),
  comparison("refresh", "refresh_token exchanges", (stage) =>
    startTokenContest(stage, { least: 0.5, sideOf: refreshing })),
  comparison("code", "authorization_code exchanges", (stage) =>
    startTokenContest(stage, { least: 0.5, sideOf: redeeming })),
];

/** The source of a side's tokens; `gatepost` is undefined for the limit, which stores nothing. */
interface TokenSource {
  readonly name: string;
  readonly server: ServerProcess;
  readonly app: BenchApp;
  readonly gatepost: BenchGatepost | undefined;
}

interface TokenContest {
  readonly least: number;
  readonly sideOf: (source: TokenSource) => Side;
  readonly withPeers?: boolean;
}

async function startTokenContest(
  stage: Stage,
  { least, sideOf, withPeers = false }: TokenContest,
): Promise<Contest> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  const limit = await startProcess([LIMIT_SERVER, "token"]);
  const { app } = gatepost;
  const references: Reference[] = [{
    side: sideOf({ name: "storeless limit", server: limit, app, gatepost: undefined }),
    target: { kind: "at least", value: least },
  }];
  const peer = withPeers && stage.peers !== undefined
    ? await startOidcProvider(stage.peers, app)
    : undefined;
  if (peer) {
    const source = { name: "node-oidc-provider", server: peer, app, gatepost: undefined };
    references.push({
      side: clientCredentials(source, "/token"),
      target: { kind: "at least", value: 3 },
    });
  }
  return {
    gatepost: sideOf({ name: "Gatepost", server: gatepost, app, gatepost }),
    references,
    stop: async () => void await Promise.all([gatepost.stop(), limit.stop(), peer?.stop()]),
  };
}

/** The bytes of a token request. */
export function tokenRequest(
  fields: Readonly<Record<string, string>>,
  basic?: string,
  path = PATH,
): Buffer {
  return requestBytes("POST", path, {
    "Content-Type": "application/x-www-form-urlencoded",
    ...basic !== undefined && { Authorization: basic },
  }, String(new URLSearchParams(fields)));
}

function clientCredentials({ name, server, app }: TokenSource, path = PATH): Side {
  const fields = { grant_type: "client_credentials", scope: "orders" };
  const bytes = tokenRequest(fields, app.basic, path);
  return loadSide(name, server, CONNECTIONS, () => bytes);
}

/** Each connection repeatedly exchanges the refresh token of its last response. */
function refreshing({ name, server, app, gatepost }: TokenSource): Side {
  let first: readonly string[] = [];
  const { id: client_id, secret: client_secret } = app;
  return {
    name,
    cpuMs: server.cpuMs,
    async prepare() {
      if (gatepost) first = await obtainRefreshTokens(gatepost);
    },
    run: (durationMs) =>
      runLoad({
        port: server.port,
        connections: CONNECTIONS,
        durationMs,
        status: 200,
        next(connection, lastBody) {
          const refresh_token = lastBody === undefined
            ? first[connection] ?? "made-up"
            : /"refresh_token":"([^"]+)"/.exec(lastBody)?.[1] ?? "";
          const grant_type = "refresh_token";
          return tokenRequest({ grant_type, refresh_token, client_id, client_secret });
        },
      }),
  };
}

/** A refresh token for each connection. */
export function obtainRefreshTokens({ refreshToken }: BenchGatepost): Promise<string[]> {
  return Promise.all(Array.from({ length: CONNECTIONS }, refreshToken));
}

/** Redeems codes that are written into the server's database, as its pages would make them. */
function redeeming({ name, server, app, gatepost }: TokenSource): Side {
  let codes: string[] = [];
  return {
    name,
    cpuMs: server.cpuMs,
    async prepare(turnMs) {
      const count = Math.ceil(CODES_A_SECOND * turnMs / 1000);
      codes = gatepost
        ? await seedCodes(gatepost, count)
        : Array.from({ length: count }, () => newHandle(newId("g", Date.now())).token);
    },
    run: (durationMs) =>
      runLoad({
        port: server.port,
        connections: CONNECTIONS,
        durationMs,
        status: 200,
        next() {
          const code = codes.pop();
          if (code === undefined) return undefined;
          const fields = { grant_type: "authorization_code", code, redirect_uri: REDIRECT_URI };
          return tokenRequest(fields, app.basic);
        },
      }),
  };
}

async function seedCodes({ databasePath, app }: BenchGatepost, count: number) {
  const database = openSqliteDatabase(databasePath);
  const nowMs = Date.now();
  const users = Array.from({ length: USERS }, () => ({
    id: newId("u", nowMs),
    session: sha256(newSecret()),
  }));
  await database.write(users.flatMap(({ id, session }) => [
    insertUser({ id, username: id, phc: "", scopes: ["consumer"], createdAtMs: nowMs }),
    insertSession(session, id, nowMs, nowMs + CODE_TTL_MS),
  ]));
  const codes: string[] = [];
  while (codes.length < count) {
    await database.write(Array.from({ length: CODES_A_BATCH }, () => {
      const id = newId("g", nowMs);
      const { token, hash } = newHandle(id);
      const user = users[codes.length % USERS];
      if (!user) throw new Error("There are no users");
      codes.push(token);
      return insertCode({
        id,
        app: app.id,
        user: user.id,
        scopes: ["consumer"],
        redirectUri: REDIRECT_URI,
        challenge: null,
        untilMs: nowMs + CODE_TTL_MS,
      }, hash, user.session, nowMs);
    }));
  }
  await database.close();
  return codes;
}
