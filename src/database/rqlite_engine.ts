import { createReadStream, createWriteStream, statSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { DatabaseSync } from "node:sqlite";
import { text } from "node:stream/consumers";
import { pipeline } from "node:stream/promises";
import { setTimeout as pause } from "node:timers/promises";
import { newId } from "../base/id.ts";
import { messageOf } from "../base/message_of.ts";
import type { Seal } from "../base/seal.ts";
import { backUpSqlite, withTemporary } from "./backup.ts";
import { type Database, UnavailableError, UnusableDatabaseError } from "./database.ts";
import type { Engine } from "./engine.ts";
import {
  beginsAsDatabase,
  checkUsable,
  findSchemaError,
  findSealMismatch,
  isEmpty,
} from "./judge.ts";
import { asideOf, checkSource, copyJudged } from "./restore.ts";
import { openRqliteDatabase } from "./rqlite.ts";
import { createRqliteClient, type RqliteAddress, type RqliteClient } from "./rqlite_client.ts";
import { createRqliteClock } from "./rqlite_clock.ts";
import { judgeCluster, migrateCluster, readCluster } from "./rqlite_judge.ts";
import { acquireRqlitePresence, isAnybodyOnCluster } from "./rqlite_presence.ts";

const LEADER_MS = 5_000;
const COPY_MS = 3_600_000;
const WRITTEN_MS = 600_000;
const PAUSE_MS = 1_000;
/** A leader that reads hundreds of megabytes may be too busy to stay the leader. */
const SENDINGS = 5;

/** Makes the engine of an rqlite cluster; messages call it `name`. */
export function createRqliteEngine(cluster: RqliteAddress, name: string): Engine {
  async function ask<Result>(
    work: (client: RqliteClient) => Promise<Result>,
    signal?: AbortSignal,
  ): Promise<Result> {
    signal?.throwIfAborted();
    const client = createRqliteClient(cluster);
    signal?.addEventListener("abort", client.close);
    try {
      return await work(client);
    } catch (error) {
      signal?.throwIfAborted();
      throw error;
    } finally {
      client.close();
    }
  }

  /** Of many that start at once one migrates; the others fail, and find it done. */
  async function prepare(client: RqliteClient, seal?: Seal, lastError?: string): Promise<void> {
    const state = await judgeCluster(client, (held) => seal && findSealMismatch(held, seal));
    checkUsable(name, state);
    const error = await migrateCluster(client, state.kind === "usable" ? state.schemaVersion : 0);
    if (error === undefined) return;
    if (error === lastError) throw new UnusableDatabaseError(`Database ${name}: ${error}`);
    await prepare(client, seal, error);
  }

  async function findClockError(client: RqliteClient): Promise<string | undefined> {
    const clock = createRqliteClock(client, undefined, Date.now);
    await clock.look();
    if (clock.state() === "ok") return undefined;
    return `this machine's clock differs by ${clock.skewMs()} ms from those of the cluster: set it`;
  }

  const judge = (seal: Seal) =>
    ask(async (client) => {
      const [state, clockError] = await Promise.all([
        judgeCluster(client, (schema) =>
          findSchemaError(schema) ?? findSealMismatch(schema, seal)),
        findClockError(client),
      ]);
      const { warnings = [] } = state;
      return clockError === undefined ? state : { ...state, warnings: [...warnings, clockError] };
    });

  /** Also of what is newer than this program: a backup may take its place. */
  const holdsNothing = () =>
    ask((client) => readCluster(client, isEmpty)).catch((cause: unknown) => {
      const message = `Database ${name}: ${messageOf(cause)}.`;
      throw new UnusableDatabaseError(message, { cause });
    });

  /** The copy comes whole into a file of its own, which is then backed up as any other. */
  async function backUp(target: string, signal: AbortSignal): Promise<number> {
    return withTemporary(`${target}.download`, async (file) => {
      await ask(async (client) => {
        const copy = await send(client);
        await pipeline(copy, createWriteStream(file)).catch((cause: NodeJS.ErrnoException) => {
          if (cause.code !== "ECONNRESET") throw cause; // of the file
          failCopy(cause);
        });
      }, signal);
      // What stands between may have answered; SQLite would take an empty file for a database.
      if (!beginsAsDatabase(file)) failCopy(undefined);
      return await backUpSqlite(file, target, signal);
    });
  }

  async function look<Result>(read: (database: Database) => Promise<Result>): Promise<Result> {
    const database = openRqliteDatabase(createRqliteClient(cluster));
    return await read(database).finally(database.close);
  }

  return {
    address: name,
    exists: async () => checkUsable(name, await ask(judgeCluster)),
    judge,
    look,
    async open(observe, log, seal) {
      await ask(async (client) => {
        // A server is not ready instead, until its clock is set.
        const judged = log ? undefined : findClockError(client);
        const [error] = await Promise.all([judged, prepare(client, seal)]);
        if (error !== undefined) throw new UnusableDatabaseError(`Database ${name}: ${error}.`);
      });
      const client = createRqliteClient(cluster);
      const database = openRqliteDatabase(client, observe);
      const clock = log && createRqliteClock(client, log, Date.now);
      // A server is to be seen also before its worker has started, and where it never does.
      const presence = log && await acquireRqlitePresence(database, newId("c", Date.now()));
      const stopClock = await clock?.start();
      return {
        ...database,
        heavy: database, // it is read elsewhere
        backUpAs: undefined,
        disk: async () => undefined,
        async close() {
          stopClock?.();
          await presence?.close();
          return database.close();
        },
        state: () => clock?.state() ?? "ok",
        cluster: clock,
        forgetOverwritten: () => "rqlite keeps its own until it has made enough snapshots",
        connect: () => undefined,
      };
    },
    backUp,
    async restore(source, seal, nowMs, signal) {
      const target = `${source}.load`;
      checkSource(source, target);
      return withTemporary(target, async (file) => {
        await withTemporary(`${target}.whole`, async (whole) => {
          await copyJudged(source, whole, seal, signal);
          compact(whole, file);
        });
        const keptAs = await holdsNothing() ? undefined : asideOf(source, nowMs);
        if (await look(isAnybodyOnCluster)) {
          throw new UnusableDatabaseError(`A process works on ${name}: stop every server first.`);
        }
        signal.throwIfAborted(); // while it is known that nothing was replaced
        if (keptAs !== undefined) await backUp(keptAs, signal);
        try {
          const found = await ask(async (client) => {
            const loaded = await text(await send(client, file));
            await waitForLog(client, signal);
            return loaded;
          }, signal);
          if (found.includes('"error"')) throw new UnusableDatabaseError(found);
          checkUsable(name, await judge(seal));
        } catch (cause) {
          if (cause instanceof UnavailableError) throw cause; // nobody leads, so it was not sent
          const reason = `It is not known whether ${name} was replaced (${messageOf(cause)})`;
          const kept = keptAs === undefined ? "" : `; what was there is in ${keptAs}`;
          throw new UnusableDatabaseError(`${reason}${kept}.`, { cause });
        }
        return { bytes: statSync(file).size, keptAs };
      });
    },
  };
}

/** Leaves out what has been deleted: a node needs memory for all that it loads. */
function compact(file: string, target: string): void {
  using connection = new DatabaseSync(file);
  // In place it would need as much room in the system's folder for temporary files.
  connection.prepare("VACUUM INTO ?").run(target);
}

/** Nothing goes through the log of a leader that is still writing gigabytes which it has loaded. */
async function waitForLog(client: RqliteClient, signal: AbortSignal): Promise<void> {
  const path = "/db/query?level=strong&redirect";
  for (const untilMs = performance.now() + WRITTEN_MS; performance.now() < untilMs;) {
    const untilNextMs = performance.now() + LEADER_MS;
    const found = client.ask(() => path, ['"SELECT 1"'], untilNextMs, LEADER_MS);
    if (await found.then(() => true, () => false)) return;
    await pause(PAUSE_MS, undefined, { signal });
  }
}

function failCopy(cause: unknown): never {
  throw new UnavailableError("The leader has not sent all of its copy", { cause });
}

/** Has the leader load a file, or else send all that it holds. */
async function send(client: RqliteClient, file?: string): Promise<IncomingMessage> {
  for (let sendings = 1;; sendings++) {
    const leader = await client.findLeader(performance.now() + LEADER_MS);
    const response = file === undefined
      // Vacuumed: what has been deleted is left out, and it can be made beside a snapshot.
      ? await client.request(leader, "GET", "/db/backup?vacuum", COPY_MS).catch(failCopy)
      : await client.request(leader, "POST", "/db/load", COPY_MS, createReadStream(file));
    if (response.statusCode === 200) return response;
    const reason = `HTTP ${response.statusCode} ${await text(response)}`;
    // Nothing is in the log then; and to load the same once more would do no harm.
    if (sendings === SENDINGS || !/not leader|leader not found|not ready/.test(reason)) {
      throw new UnusableDatabaseError(`${leader} refuses to copy: ${reason.trim()}`);
    }
    await pause(PAUSE_MS);
  }
}
