import assert from "node:assert/strict";
import { test } from "node:test";
import { idBound } from "../../src/base/id.ts";
import { OutcomeUnknownError } from "../../src/database/database.ts";
import { createLedger, IS_STORED } from "../../src/database/rqlite_ledger.ts";
import { sql } from "../../src/database/sql.ts";
import { put } from "../helpers/put.ts";
import { turn } from "../helpers/turn.ts";
import { stage, stored } from "./rqlite_writer_stage.ts";

test("after a lost response each stored batch gets its own changes", async (t) => {
  const { writer, node, asked, run, answer, names } = stage(t);
  node.exec("INSERT INTO write_groups (id, counts) VALUES ('w', '9 9 9 9 ')"); // another group
  const writes = [
    writer.write([put("a"), put("b")]),
    writer.write([sql`UPDATE settings SET value = '2' WHERE name IN ('a', 'b')`]),
    writer.write([sql`DELETE FROM settings WHERE name = 'none'`]),
  ];
  await turn();
  run(asked[0]?.statements ?? []);
  await answer(); // the client sends the same again, which is stored already
  await answer(); // and the changes are read
  assert.match(asked.at(-1)?.path ?? "", /level=strong/, "not through the Raft log");
  assert.deepEqual(await Promise.all(writes), [[1, 1], [2], [0]]);
  const other = node.prepare("SELECT counts FROM write_groups WHERE id = 'w'").get();
  assert.equal(other?.["counts"], "9 9 9 9 ");
  assert.deepEqual(names(), ["a", "b"]);
});

test("only the next group blocks a group with an unknown outcome", async (t) => {
  const { writer, asked, answer, fail, run, names } = stage(t);
  const lost = assert.rejects(writer.write([put("lost")]), OutcomeUnknownError);
  await turn();
  fail(new OutcomeUnknownError("lost"));
  await lost;
  await stored(writer.write([put("next")]), answer);
  const [late, next] = asked.map(({ statements }) => statements);
  assert.deepEqual(run(late ?? []), [{ error: IS_STORED }]);
  assert.deepEqual(names(), ["next"]);
  await stored(writer.write([put("last")]), answer);
  assert.equal((asked[2]?.statements.length ?? 0) + 1, next?.length);
});

test("the next group blocks several groups with an unknown outcome", async (t) => {
  const { writer, asked, answer, fail, run, names } = stage(t);
  for (const name of ["one", "two", "three"]) {
    const lost = assert.rejects(writer.write([put(name)]), OutcomeUnknownError);
    await turn();
    fail(new OutcomeUnknownError("lost"));
    await lost;
  }
  await stored(writer.write([put("next")]), answer);
  for (const { statements } of asked.slice(0, 3)) {
    assert.deepEqual(run(statements), [{ error: IS_STORED }]);
  }
  assert.deepEqual(names(), ["next"]);
});

test("the next group blocks the last 1,000 groups with an unknown outcome", async (t) => {
  const { writer, asked, answer, fail } = stage(t);
  for (let count = 0; count < 1_100; count++) {
    const lost = assert.rejects(writer.write([put("lost")]), OutcomeUnknownError);
    await turn();
    fail(new OutcomeUnknownError("lost"));
    await lost;
  }
  await stored(writer.write([put("next")]), answer);
  const ids = asked.map(({ statements }) => String(JSON.parse(statements[0] ?? "")[1]));
  const blocked = asked.at(-1)?.statements[1] ?? "";
  assert.deepEqual(ids.filter((id) => blocked.includes(id)), ids.slice(100, 1_100));
});

test("the next group is stored even if one with an unknown outcome was stored", async (t) => {
  const { writer, asked, answer, fail, run, names } = stage(t);
  const lost = assert.rejects(writer.write([put("lost")]), OutcomeUnknownError);
  await turn();
  run(asked[0]?.statements ?? []);
  fail(new OutcomeUnknownError("lost"));
  await lost;
  await stored(writer.write([put("next")]), answer);
  assert.deepEqual(names(), ["lost", "next"]);
});

test("once a minute rows of groups that are older than ten minutes are removed", async (t) => {
  const { writer, node, answer, pass } = stage(t);
  const insert = node.prepare("INSERT INTO write_groups (id) VALUES (?)");
  const old = (minutes: number) => idBound("w", Date.now() - minutes * 60_000);
  const count = () =>
    node.prepare("SELECT count(*) AS count FROM write_groups").get()?.["count"];
  for (const minutes of [9, 11]) insert.run(old(minutes));
  await stored(writer.write([put("a")]), answer);
  assert.equal(count(), 3);
  pass(60_000);
  await stored(writer.write([put("b")]), answer);
  assert.equal(count(), 3, "one row removed, one added");
  insert.run(old(12));
  pass(59_999);
  await stored(writer.write([put("c")]), answer);
  assert.equal(count(), 5);
});

test("the ledger dates rows by the later clock and removes them by the earlier", (t) => {
  const elapsedMs = performance.now.bind(performance);
  for (const aheadMs of [-3_600_000, 3_600_000]) {
    const ledger = createLedger({ ask: () => Promise.resolve([]), aheadMs: () => aheadMs });
    t.mock.method(performance, "now", () => elapsedMs() + 61_000);
    const nowMs = Date.now();
    const [id, oldest] = ledger.begin().head.map((text) => String(JSON.parse(text)[1]));
    t.mock.restoreAll();
    assert.ok((id ?? "") >= idBound("w", nowMs + Math.max(aheadMs, 0)), `${aheadMs}: ${id}`);
    const keptFrom = idBound("w", Date.now() + Math.min(aheadMs, 0) - 600_000);
    assert.ok((oldest ?? "~") <= keptFrom, `${aheadMs}: ${oldest}`);
  }
});
