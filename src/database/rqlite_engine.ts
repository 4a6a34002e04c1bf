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
import { checkSource, copyJudged, keptPath } from "./restore.ts";
import { openRqliteDatabase } from "./rqlite.ts";
import { createRqliteClient, type RqliteAddress, type RqliteClient } from "./rqlite_client.ts";
import { createRqliteClock } from "./rqlite_clock.ts";
import { judgeCluster, migrateCluster, readCluster } from "./rqlite_judge.ts";
import { acquireRqlitePresence, isAnybodyOnCluster } from "./rqlite_presence.ts";

const LEADER_MS = 5_000;
const COPY_MS = 3_600_000;
const WRITTEN_MS = 600_000;
const PAUSE_MS = 1_000;
/** How often a copy is tried: a leader that is busy with hundreds of MB may lose leadership. */
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

  /** Migrates. Of processes that start at once one succeeds; the others retry and find it done. */
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

  /** Whether the cluster is empty. Reads a newer schema too: a backup may take its place. */
  const holdsNothing = () =>
    ask((client) => readCluster(client, isEmpty)).catch((cause: unknown) => {
      const message = `Database ${name}: ${messageOf(cause)}.`;
      throw new UnusableDatabaseError(message, { cause });
    });

  /** Downloads the whole copy into a temporary file, and backs that up like any other file. */
  async function backUp(target: string, signal: AbortSignal): Promise<number> {
    return withTemporary(`${target}.download`, async (file) => {
      await ask(async (client) => {
        const copy = await send(client);
        await pipeline(copy, createWriteStream(file)).catch((cause: NodeJS.ErrnoException) => {
          if (cause.code !== "ECONNRESET") throw cause; // the file's error
          failCopy(cause);
        });
      }, signal);
      // A proxy may have answered; SQLite would take an empty file for a database.
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
        // Commands only: a server starts, but is not ready until its clock is set.
        const judged = log ? undefined : findClockError(client);
        const [error] = await Promise.all([judged, prepare(client, seal)]);
        if (error !== undefined) throw new UnusableDatabaseError(`Database ${name}: ${error}.`);
      });
      const client = createRqliteClient(cluster);
      const database = openRqliteDatabase(client, observe);
      const clock = log && createRqliteClock(client, log, Date.now);
      // Others must see the server even before its delivery worker starts, or if it never does.
      const presence = log && await acquireRqlitePresence(database, newId("c", Date.now()));
      const stopClock = await clock?.start();
      return {
        ...database,
        heavy: database, // the nodes do the work
        backUpAs: undefined,
        disk: async () => undefined,
        async close() {
          stopClock?.();
          await presence?.close();
          return database.close();
        },
        state: () => clock?.state() ?? "ok",
        cluster: clock,
        forgetOverwritten: () => "rqlite keeps its log until it has made enough snapshots",
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
        const keptAs = await holdsNothing() ? undefined : keptPath(source, nowMs);
        if (await look(isAnybodyOnCluster)) {
          throw new UnusableDatabaseError(`A process works on ${name}: stop every server first.`);
        }
        signal.throwIfAborted(); // so far nothing can have been replaced
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
          if (cause instanceof UnavailableError) throw cause; // no leader: it was not sent
          const reason = `It is not known whether ${name} was replaced (${messageOf(cause)})`;
          const kept = keptAs === undefined ? "" : `; what was there is in ${keptAs}`;
          throw new UnusableDatabaseError(`${reason}${kept}.`, { cause });
        }
        return { bytes: statSync(file).size, keptAs };
      });
    },
  };
}

/** Leaves out deleted content: a node needs memory for all that it loads. */
function compact(file: string, target: string): void {
  using connection = new DatabaseSync(file);
  // VACUUM in place would need as much space in the system's temporary folder.
  connection.prepare("VACUUM INTO ?").run(target);
}

/** Waits for a read through the Raft log, which a leader blocks while it stores loaded data. */
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

/** Has the leader load the file; without one, has it send a copy of the database. */
async function send(client: RqliteClient, file?: string): Promise<IncomingMessage> {
  for (let sendings = 1;; sendings++) {
    const leader = await client.findLeader(performance.now() + LEADER_MS);
    const response = file === undefined
      // A vacuumed copy has no deleted content, and can be made beside a snapshot.
      ? await client.request(leader, "GET", "/db/backup?vacuum", COPY_MS).catch(failCopy)
      : await client.request(leader, "POST", "/db/load", COPY_MS, createReadStream(file));
    if (response.statusCode === 200) return response;
    const reason = `HTTP ${response.statusCode} ${await text(response)}`;
    // The log has nothing of it then; and loading the same file twice would do no harm.
    if (sendings === SENDINGS || !/not leader|leader not found|not ready/.test(reason)) {
      throw new UnusableDatabaseError(`${leader} refuses to copy: ${reason.trim()}`);
    }
    await pause(PAUSE_MS);
  }
}
