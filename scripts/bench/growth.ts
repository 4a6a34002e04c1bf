import type { BenchCase, Finding, Stage } from "./bench_case.ts";
import { compare, type Side } from "./compare.ts";
import { type BenchApp, type BenchGatepost, startGatepost } from "./gatepost.ts";
import { growDatabase } from "./growth_seed.ts";
import { requestBytes, runLoad } from "./http_load.ts";
import { measureBacklog } from "./post_backlog.ts";
import { withBench } from "./post_rounds.ts";
import { CONNECTIONS, obtainRefreshTokens, tokenRequest } from "./tokens.ts";

/** Measures what an operation costs as the tables grow. */
export const GROWTH_CASES: readonly BenchCase[] = [
  { name: "growth", measure: measureGrowth },
  { name: "backlog", measure: measurePending },
];

const FEW = 1000;
const MANY = 1_000_000;
const TARGET = { kind: "at most", value: 1.2 } as const;

interface Grown {
  readonly name: string;
  readonly refreshTokens: readonly string[];
  readonly gatepost: BenchGatepost;
}

/** Compares the CPU time of operations at a thousand and at a million rows of their tables. */
async function measureGrowth(stage: Stage): Promise<Finding[]> {
  const many = await startGrown("1M", MANY, stage);
  const few = await startGrown("1k", FEW, stage);
  try {
    const findings: Finding[] = [];
    for (const [what, sideOf] of Object.entries(OPERATIONS)) {
      const contest = {
        gatepost: await sideOf(many),
        references: [{ side: await sideOf(few), target: TARGET }],
        stop: async () => {},
      };
      findings.push(...await compare(what, contest, stage));
    }
    return findings.map(({ what, cpuMicros = { gatepost: NaN, reference: NaN }, latencyMs }) => ({
      what: `1M grants and subscriptions: CPU of ${what}`,
      unit: "µs",
      gatepost: cpuMicros.gatepost,
      reference: { name: "1k of them", value: cpuMicros.reference },
      ratio: cpuMicros.gatepost / cpuMicros.reference,
      ...latencyMs && { latencyMs },
      target: TARGET,
    }));
  } finally {
    await Promise.all([many.gatepost.stop(), few.gatepost.stop()]);
  }
}

/** A first start makes the app, so that the grants can belong to it. */
async function startGrown(name: string, rows: number, stage: Stage): Promise<Grown> {
  const folder = stage.newFolder();
  const first = await startGatepost(folder);
  await first.stop();
  const refreshTokens = await growDatabase(first.databasePath, first.app.id, rows);
  const { nodeFlags } = stage;
  const gatepost = await startGatepost(folder, { nodeFlags, app: first.app });
  return { name, refreshTokens, gatepost };
}

const OPERATIONS: Readonly<Record<string, (grown: Grown) => Promise<Side>>> = {
  "a client_credentials token": async (grown) => {
    const { basic } = grown.gatepost.app;
    const bytes = tokenRequest({ grant_type: "client_credentials", scope: "orders" }, basic);
    return sideOf(grown, () => bytes);
  },
  "a refresh": async (grown) => {
    const unused = [...grown.refreshTokens];
    shuffle(unused);
    let first: readonly string[] = [];
    const side = sideOf(grown, (connection, lastBody) => {
      const last = /"refresh_token":"([^"]+)"/.exec(lastBody ?? "")?.[1];
      const token = unused.pop() ?? last ?? first[connection] ?? "";
      return refreshRequest(token, grown.gatepost.app);
    });
    const prepare = async () => {
      first = await obtainRefreshTokens(grown.gatepost);
    };
    return { ...side, prepare };
  },
  "a POST with one event": async (grown) => {
    const bytes = requestBytes("POST", "/orders", {
      Authorization: `Bearer ${await grown.gatepost.appToken()}`,
      "Content-Type": "application/json",
    }, JSON.stringify({ item: "lamp", quantity: 2 }));
    return sideOf(grown, () => bytes);
  },
};

function refreshRequest(refresh_token: string, { id: client_id, secret: client_secret }: BenchApp) {
  return tokenRequest({ grant_type: "refresh_token", refresh_token, client_id, client_secret });
}

function sideOf(
  { name, gatepost }: Grown,
  next: (connection: number, lastBody: string | undefined) => Buffer | undefined,
): Side {
  return {
    name,
    cpuMs: gatepost.cpuMs,
    run: (durationMs) =>
      runLoad({ port: gatepost.port, connections: CONNECTIONS, durationMs, status: 200, next }),
  };
}

/** The same for pending deliveries, of which `npm run measure:post` measures more. */
async function measurePending(): Promise<Finding[]> {
  const lines = await withBench({ rounds: 1, profiles: undefined }, measureBacklog);
  const last = lines.at(-1);
  if (last?.unit !== "×") throw new Error("The backlog was not compared");
  const each = lines.filter(({ what }) => what.trim() === "CPU each")
    .map(({ value }) => value * 1000);
  return [{
    what: "1M pending deliveries: CPU of a delivery",
    unit: "µs",
    gatepost: each[1] ?? NaN,
    reference: { name: "1k of them", value: each[0] ?? NaN },
    ratio: last.value,
    target: TARGET,
  }];
}

/** Shuffles in place (Fisher and Yates), so that reads are spread over the whole table. */
function shuffle(tokens: string[]): void {
  for (let last = tokens.length - 1; last > 0; last--) {
    const other = Math.floor(Math.random() * (last + 1));
    [tokens[last], tokens[other]] = [tokens[other] ?? "", tokens[last] ?? ""];
  }
}
