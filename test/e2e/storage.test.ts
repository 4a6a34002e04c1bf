// On SQLite alone: it fills the file's disk, and locks the file.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, rmSync, truncateSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import {
  type EventStage,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { assertProblem } from "../helpers/responses.ts";
import { PATIENCE_MS, until } from "../helpers/until.ts";

const ENDPOINTS = fileURLToPath(new URL("../fixtures/server_endpoints", import.meta.url));
/** The promise is a 503 within 2 s; a busy machine needs a little more. */
const RESPONSE_MS = 2_000 + 200;
/** For requests that write nothing: more than a busy machine needs, less than a wait for a lock. */
const PROMPT_MS = 600;

interface Trouble {
  begin(stage: EventStage): void;
  end(stage: EventStage): void;
}

interface Place {
  /** For the database. */
  readonly folder: string;
  readonly trouble: Trouble;
  /** To be called once the server has ended. */
  close(): void;
}

/** Another process holds the database's write lock. */
function openLocked(begin: string): Place {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-locked-"));
  let other: DatabaseSync | undefined;
  return {
    folder,
    close() {
      if (other?.isOpen) other.close();
      rmSync(folder, { recursive: true });
    },
    trouble: {
      begin() {
        // The server may be writing just then: the lock is waited for, as the server itself does.
        other = new DatabaseSync(join(folder, "gatepost.db"), { timeout: 5_000 });
        other.exec(begin);
      },
      end() {
        other?.exec("ROLLBACK");
        other?.close();
      },
    },
  };
}

/** A limit of 4 KiB for each file, which every write to the database would exceed. */
function openLimited(): Place {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-limited-"));
  const limit = (stage: EventStage, bytes: string) => {
    const { pid } = stage.gatepost.server;
    const { status, stderr } = spawnSync("prlimit", ["--pid", String(pid), `--fsize=${bytes}:`]);
    assert.equal(status, 0, String(stderr));
  };
  return {
    folder,
    close: () => rmSync(folder, { recursive: true }),
    trouble: {
      begin: (stage) => limit(stage, "4096"),
      end: (stage) => limit(stage, "unlimited"),
    },
  };
}

/** A disk of 4 MiB that is really full: only for a user who may mount one. */
function openFull(): Place {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-full-"));
  assert.equal(mount(folder), true);
  const filler = join(folder, "filler");
  return {
    folder,
    close() {
      spawnSync("umount", [folder]);
      rmSync(folder, { recursive: true });
    },
    trouble: {
      begin() {
        for (const bytes of [65_536, 4096, 512, 1]) {
          for (let isFull = false; !isFull;) {
            try {
              appendFileSync(filler, Buffer.alloc(bytes));
            } catch (error) {
              assert.ok(error instanceof Error && "code" in error && error.code === "ENOSPC");
              isFull = true;
            }
          }
        }
      },
      end: () => truncateSync(filler),
    },
  };
}

function mount(folder: string): boolean {
  return spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m", "none", folder]).status === 0;
}

function canMount(): boolean {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-mount-"));
  const isMounted = mount(folder);
  if (isMounted) spawnSync("umount", [folder]);
  rmSync(folder, { recursive: true });
  return isMounted;
}

const PLACES: readonly (readonly [what: string, open: () => Place])[] = [
  ["a locked database", () => openLocked("BEGIN IMMEDIATE")],
  ["an exclusively locked database", () => openLocked("BEGIN EXCLUSIVE")],
  ["a limit on the size of files", openLimited],
  ...canMount() ? [["a full disk", openFull] as const] : [],
];

for (const [what, openPlace] of PLACES) {
  describe(what, () => {
    test("makes writes 503 with Retry-After within 2 s, and nothing is lost", async (t) => {
      const { folder, trouble, close } = openPlace();
      const file = join(folder, "gatepost.db");
      const stage = await startEventStage({
        GATEPOST_DATABASE: file,
        GATEPOST_ENDPOINTS: ENDPOINTS,
      });
      t.after(async () => {
        await stage.stop();
        close();
      });
      const token = await stage.newConsumer();
      const subscription = await stage.subscribe(token, newName("e"));
      const acknowledged = new Set<string>();
      const refused = new Set<string>();
      const publish = async (name: string) => {
        const data = `${name} ${"x".repeat(2_000)}`;
        const startedMs = performance.now();
        const response = await stage.gatepost.api.postJson("/dispatch", {
          events: [{ name: subscription.event, data }],
        });
        if (response.status === 202) acknowledged.add(data);
        else refused.add(data);
        return { response, tookMs: performance.now() - startedMs };
      };

      await publish("before");
      await stage.receiver.waitFor(1, PATIENCE_MS, subscription.path);
      // One attempt is in flight when the trouble begins, and gets its response while it lasts.
      stage.receiver.react(subscription.path, { kind: "answer", delayMs: 500 }, { kind: "answer" });
      await publish("in flight");
      await stage.receiver.waitFor(2, PATIENCE_MS, subscription.path);

      trouble.begin(stage);
      const writes = Promise.all([
        ...Array.from({ length: 12 }, async (_, index) => {
          await sleep(index * 120);
          return publish(`refused ${index}`);
        }),
        timed(() => stage.call("POST", "/consumer/subscription", token, {
          event: newName("e"),
          endpoint: "https://shop.example/",
        })),
        timed(() => stage.call("DELETE", `/consumer/subscription/${subscription.id}`, token)),
      ]);
      const reads: number[] = [];
      for (let index = 0; index < 20; index++) {
        const { response, tookMs } = await timed(() => readSomething(stage, subscription, index));
        assert.equal(response.status, 200, response.text);
        reads.push(Math.round(tookMs));
        await sleep(60);
      }
      assert.ok(reads.every((ms) => ms < PROMPT_MS), `not delayed: ${reads}`);
      for (const { response, tookMs } of await writes) {
        assertProblem(response, 503);
        assert.ok(Number(response.headers.get("retry-after")) > 0);
        assert.ok(tookMs < RESPONSE_MS, `${tookMs} ms`);
      }
      assert.equal(refused.size, 12);

      trouble.end(stage);
      await until(async () => (await publish("again")).response.status === 202);
      await publish("after");
      await until(() => bodies(stage, subscription).size === acknowledged.size);
      await sleep(500);
      assert.deepEqual(bodies(stage, subscription), acknowledged);
      const sent = stage.receiver.requests(subscription.path);
      const ids = new Set(sent.map(({ headers }) => headers["webhook-id"]));
      assert.equal(ids.size, sent.length, "nothing is sent twice, not even the attempt in flight");
      const check = new DatabaseSync(file, { readOnly: true });
      const result = check.prepare("PRAGMA integrity_check").get();
      check.close();
      assert.deepEqual({ ...result }, { integrity_check: "ok" });
    });
  });
}

async function timed(
  run: () => Promise<ClientResponse>,
): Promise<{ response: ClientResponse; tookMs: number }> {
  const startedMs = performance.now();
  const response = await run();
  return { response, tookMs: performance.now() - startedMs };
}

/** One of several requests that store nothing. */
function readSomething(stage: EventStage, { id, token }: StagedSubscription, index: number) {
  const { api } = stage.gatepost;
  const paths = [
    "/now", "/consumer/subscription", `/consumer/subscription/${id}/delivery`,
    "/authorization/whoami", "/.well-known/jwks.json", "/system/health",
  ];
  return api.get(paths[index % paths.length] ?? "/now", bearer(token));
}

/** The data of all callbacks to a subscription. */
function bodies(stage: EventStage, { path }: StagedSubscription): Set<string> {
  return new Set(stage.receiver.requests(path).map(({ body }) => JSON.parse(String(body))));
}
