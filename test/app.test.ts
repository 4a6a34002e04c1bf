import assert from "node:assert/strict";
import dns from "node:dns";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { findFreePort } from "../scripts/free_port.ts";
import { startApp } from "../src/app.ts";
import { configOf } from "./helpers/config.ts";
import { makeFolder } from "./helpers/database.ts";

test("a start that fails after the server listens leaves nothing running", async (t) => {
  const folder = makeFolder(t);
  const config = configOf({
    GATEPOST_PORT: "0",
    GATEPOST_DATABASE: join(folder, "gatepost.db"),
    GATEPOST_ADMIN_PASSWORD: "correct horse battery",
  });
  let url = "";
  const log = {
    debug() {},
    info() {},
    always(message: string, fields: Readonly<Record<string, unknown>> = {}) {
      if (message !== "listening") return;
      url = String(fields["url"]);
      throw new Error("the last step failed");
    },
    warn() {},
    error() {},
  };
  const droppedLogLines = () => 0;
  const host = { log, droppedLogLines, hashLimit: 1, print() {}, warnings: [] };
  await assert.rejects(startApp(config, host), /the last step failed/);

  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  const [error] = await once(socket, "error") as [NodeJS.ErrnoException];
  assert.equal(error.code, "ECONNREFUSED");
  assert.deepEqual(await readdir(folder), ["gatepost.db"], "the lock is gone, the log is merged");
});

test("a request that comes before the console's listener has started waits for it", async (t) => {
  const port = await findFreePort();
  const config = configOf({
    GATEPOST_PORT: String(port),
    GATEPOST_DATABASE: join(makeFolder(t), "gatepost.db"),
    GATEPOST_ADMIN_PASSWORD: "correct horse battery",
    GATEPOST_CONSOLE: "localhost:0",
    GATEPOST_CRON: "off",
  });
  let early: Promise<Response> | undefined;
  const { lookup } = dns;
  t.mock.method(dns, "lookup", (name: string, ...rest: unknown[]) => {
    early = fetch(`http://127.0.0.1:${port}/system/health`);
    early.catch(() => {});
    void sleep(200).then(() => Reflect.apply(lookup, dns, [name, ...rest]));
  });
  const write = () => {};
  const log = { debug: write, info: write, always: write, warn: write, error: write };
  const host = { log, droppedLogLines: () => 0, hashLimit: 1, print() {}, warnings: [] };
  const stop = await startApp(config, host);
  try {
    const response = await early;
    assert.equal(response?.status, 200);
  } finally {
    await stop();
  }
});
