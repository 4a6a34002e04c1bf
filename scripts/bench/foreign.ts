import { createPrivateKey } from "node:crypto";
import { DatabaseSync } from "node:sqlite";
import { createSeal } from "../../src/base/seal.ts";
import {
  type ForeignKey,
  signForeign,
  startForeignIssuer,
} from "../../test/helpers/foreign_issuer.ts";
import type { Stage } from "./bench_case.ts";
import { comparison, type Contest, loadSide, type Side } from "./compare.ts";
import { type BenchGatepost, startGatepost } from "./gatepost.ts";
import { itemRequest } from "./hosted.ts";
import { CONNECTIONS } from "./tokens.ts";

/** More than a process caches (10,000), so that each token is new when its turn comes again. */
const NEW_TOKENS = 30_000;

/** Compares tokens of another issuer with the service's own, on one server. */
export const FOREIGN_CASES = [
  comparison("foreign", "protected hosted GET, another issuer's token, warm", (stage) =>
    startContest(stage, 1)),
  comparison("foreign-new", "the same, each token for the first time", (stage) =>
    startContest(stage, NEW_TOKENS)),
];

async function startContest(stage: Stage, count: number): Promise<Contest> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  const issuer = await startForeignIssuer(gatepost.url);
  await gatepost.post("/backend/issuer", { issuer: issuer.url, scopes: ["orders"] });
  const list = (make: () => string) => Array.from({ length: count }, make).map(itemRequest);
  return {
    gatepost: sideOf("another issuer's", gatepost, list(() => issuer.token({ scope: "orders" }))),
    references: [{ side: sideOf("own token", gatepost, list(await ownTokens(gatepost))) }],
    async stop() {
      await gatepost.stop();
      await issuer.close();
    },
  };
}

/** Makes tokens as the server does, with its key, since requests for so many would take longer. */
async function ownTokens({ appToken, databasePath }: BenchGatepost): Promise<() => string> {
  const [head = "", body = ""] = (await appToken()).split(".");
  const decode = (part: string) => JSON.parse(Buffer.from(part, "base64url").toString());
  const [header, claims] = [decode(head), decode(body)];
  const database = new DatabaseSync(databasePath, { readOnly: true });
  const row = database.prepare("SELECT private FROM keys WHERE kid = ?").get(header.kid);
  database.close();
  const pem = createSeal().decrypt(String(row?.["private"]), header.kid);
  const privateKey = createPrivateKey(pem);
  const key: ForeignKey = { kid: header.kid, alg: "ES256", privateKey, jwk: {} };
  let made = 0;
  return () => signForeign(header, { ...claims, jti: `${claims.jti}${made++}` }, key);
}

function sideOf(name: string, server: BenchGatepost, requests: readonly Buffer[]): Side {
  let sent = 0;
  const next = () => requests[sent++ % requests.length] ?? Buffer.alloc(0);
  return loadSide(name, server, CONNECTIONS, next);
}
