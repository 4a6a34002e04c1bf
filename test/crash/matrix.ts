import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { queryFile } from "../helpers/engine.ts";
import { PASSWORD } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import type { Random } from "../helpers/random.ts";
import { bearer } from "../helpers/requests.ts";
import { countDeliveries, type DeliveryFigures } from "./count.ts";
import { createLoad, type Load } from "./load.ts";
import { KILL_POINTS, type KillPoint, RANDOM_POINT } from "./points.ts";
import { type Recorder, startRecorder } from "./recorder.ts";
import { crashEnv, DATABASE, hasEnded, startVictim, until } from "./victim.ts";

/** The figures of a run of the crash matrix. */
export interface CrashFigures extends DeliveryFigures {
  /** How often the server was killed at each point. */
  readonly kills: Readonly<Record<string, number>>;
}

export interface CrashOptions {
  readonly kills: number;
  readonly random: Random;
  /** Called at each kill. */
  readonly report?: (line: string) => void;
}

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));
/** Two subscriptions to the first event, one to the second. */
const SUBSCRIPTIONS = [["/a", "crash.one"], ["/b", "crash.one"], ["/c", "crash.two"]] as const;
const EVENTS = ["crash.one", "crash.two"];
const start = (folder: string, env: Readonly<Record<string, string>> = {}) =>
  startVictim(folder, { GATEPOST_ENDPOINTS: ENDPOINTS, ...env });

/**
 * Kills the server again and again at every named point of an event's life, and at random ones,
 * under load on one database; then lets it finish, and counts what came.
 */
export async function runCrashMatrix(options: CrashOptions): Promise<CrashFigures> {
  const { kills, random, report } = options;
  const folder = await mkdtemp(join(tmpdir(), "gatepost-crash-"));
  const recorder = await startRecorder();
  const load = createLoad(EVENTS, recorder.url, random);
  /** How often each delivery may come again: once for each kill that caught it in flight. */
  const inFlight = new Map<string, number>();
  const counts: Record<string, number> = {};
  try {
    await subscribe(folder, recorder.url);
    recorder.delay(() => random.below(8));
    for (const name of choosePoints(kills, random)) {
      const point = KILL_POINTS[name] ?? { kind: "random" };
      await runUntilKilled(point, { folder, recorder, load, random });
      counts[name] = (counts[name] ?? 0) + 1;
      const caught = listCaught(folder, recorder);
      for (const id of caught) inFlight.set(id, (inFlight.get(id) ?? 0) + 1);
      report?.(`killed ${name}, ${caught.length} in flight`);
    }
    recorder.delay(() => 0);
    await finish(folder);
    return { kills: counts, ...countDeliveries(SUBSCRIPTIONS, load.batches, recorder, inFlight) };
  } finally {
    await recorder.close();
    await rm(folder, { recursive: true, force: true });
  }
}

/** The named points in turn, and for every fourth kill a random one. */
function choosePoints(kills: number, random: Random): string[] {
  const names = Object.keys(KILL_POINTS);
  const offset = random.below(names.length);
  let named = 0;
  return Array.from({ length: kills }, (_, index) =>
    index % 4 === 3 ? RANDOM_POINT : names[(offset + named++) % names.length] ?? RANDOM_POINT
  );
}

interface Stage {
  readonly folder: string;
  readonly recorder: Recorder;
  readonly load: Load;
  readonly random: Random;
}

async function subscribe(folder: string, receiverUrl: string): Promise<void> {
  const server = await start(folder);
  const api = createClient(server.url);
  const response = await api.postJson("/consumer/login", { username: "admin", password: PASSWORD });
  const { token }: { token: string } = JSON.parse(response.text);
  for (const [path, event] of SUBSCRIPTIONS) {
    const body = { event, endpoint: receiverUrl + path };
    const made = await api.postJson("/consumer/subscription", body, bearer(token));
    if (made.status !== 201) throw new Error(made.text);
  }
  await server.stop();
}

/** Starts the server, loads it, and returns once it has been killed at the point. */
async function runUntilKilled(point: KillPoint, stage: Stage): Promise<void> {
  const { folder, recorder, load, random } = stage;
  const env = point.kind === "commit"
    ? crashEnv(point, 1 + random.below(8))
    : {};
  const server = await start(folder, env);
  const kill = () => process.kill(server.pid, "SIGKILL");
  const stop = new AbortController();
  const loaded = load.run(server.url, stop.signal);
  switch (point.kind) {
    case "commit":
      break; // it kills itself
    case "handler":
      recorder.onNextHandler(kill);
      await sleep(random.below(100));
      await load.interruptHandler(server.url);
      break;
    case "post":
      await sleep(random.below(200));
      recorder.onNextPost(kill);
      break;
    case "shutdown": {
      await sleep(100 + random.below(200));
      recorder.delay(() => 400); // so that it has something to wait for
      await sleep(50); // until those that came before have their responses
      await until(() => recorder.open() > 0, "no attempt is in flight");
      const stopped = server.stop();
      await sleep(random.below(100));
      kill();
      if (await stopped !== null) throw new Error("the server had stopped before it was killed");
      recorder.delay(() => random.below(8));
      break;
    }
    case "random":
      await sleep(random.below(500));
      kill();
      break;
    default:
      point satisfies never;
  }
  await until(() => hasEnded(server.pid), `the server was not killed: ${JSON.stringify(point)}`);
  stop.abort();
  await Promise.all([loaded, server.kill()]);
  recorder.onNextPost(undefined);
  await until(() => recorder.connections() === 0, "connections outlive the server");
}

/** Deliveries that a dead process had claimed and that have come: they may come again. */
function listCaught(folder: string, { counts }: Recorder): string[] {
  return queryFile(join(folder, DATABASE), "SELECT id FROM deliveries WHERE claim IS NOT NULL")
    .map(({ id }) => String(id)).filter((id) => counts.has(id));
}

/** Lets the server deliver all that is left, and stops it as an operator does. */
async function finish(folder: string): Promise<void> {
  const server = await start(folder);
  const isLeft = `SELECT 1 FROM events WHERE status = 'pending'
    UNION ALL SELECT 1 FROM deliveries WHERE status = 'pending' LIMIT 1`;
  const file = join(folder, DATABASE);
  await until(() => queryFile(file, isLeft).length === 0, "deliveries are left over");
  const code = await server.stop();
  if (code !== 0) throw new Error(`the last server's exit code is ${code}`);
}
