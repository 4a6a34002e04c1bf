import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ConflictError,
  OutcomeUnknownError,
  UnavailableError,
} from "../../src/database/database.ts";
import { sql } from "../../src/database/sql.ts";
import { put } from "../helpers/put.ts";
import { turn } from "../helpers/turn.ts";
import { stage, stored } from "./rqlite_writer_stage.ts";

test("two groups are in flight while the next one gathers", async (t) => {
  const { writer, asked, answer, names } = stage(t);
  const writes = [];
  for (const name of ["a", "b", "c", "d"]) {
    writes.push(writer.write([put(name)]));
    await turn();
  }
  assert.equal(asked.length, 2);
  await answer();
  assert.deepEqual([asked.length, names()], [3, ["a"]]);
  await answer();
  await answer();
  assert.deepEqual(await Promise.all(writes), Array(4).fill([1]));
  assert.deepEqual(await writer.write([]), []);
  assert.deepEqual([asked.length, names()], [3, ["a", "b", "c", "d"]]);
});

test("a group has up to 256 batches", async (t) => {
  const { writer, answer, reports } = stage(t);
  const writes = Array.from({ length: 600 }, (_, at) => writer.write([put(`k${at}`)]));
  await turn();
  for (let group = 0; group < 3; group++) await answer();
  await Promise.all(writes);
  assert.deepEqual(reports.map(({ batches }) => batches), [256, 256, 88]);
});

test("a request has up to a mebibyte of statements, or one larger batch", async (t) => {
  const { writer, asked, answer, reports } = stage(t);
  const sizes = [2 ** 20, 2 ** 19 - 200, 2 ** 19 - 200, 2 ** 19, 1, 2 ** 21, 1];
  const writes = sizes.map((size, at) => writer.write([put(`k${at}`, "x".repeat(size))]));
  for (let done = 0; done < writes.length; done = reports.reduce((n, r) => n + r.batches, 0)) {
    await turn();
    await answer();
  }
  await Promise.all(writes);
  assert.deepEqual(reports.map(({ batches }) => batches), [1, 2, 2, 1, 1]);
  const lengths = asked.map(({ statements }) => statements.join().length);
  assert.ok(lengths.filter((length) => length > 1.01 * 2 ** 20).length <= 1, `${lengths}`);
});

test("each batch gets its own changes or its own ConflictError", async (t) => {
  const { writer, answer, answerAll, names } = stage(t);
  await stored(writer.write([put("taken")]), answer);
  // Each statement of each batch, in turn, is the one with the conflict.
  for (let wrong = 0; wrong < 4; wrong++) {
    const batches = [0, 1].map((batch) => [0, 1].map((statement) =>
      2 * batch + statement === wrong ? put("taken") : put(`${wrong} ${batch} ${statement}`)));
    const writes = batches.map((batch) => writer.write(batch));
    const none = writer.write([sql`DELETE FROM settings WHERE name = 'none'`]);
    const all = writer.write([sql`UPDATE settings SET value = '' WHERE name = 'taken'`]);
    const results = Promise.allSettled(writes);
    await turn();
    await answerAll();
    const which = wrong < 2 ? 0 : 1;
    assert.deepEqual((await results).map(({ status }) => status === "rejected"),
      [0, 1].map((batch) => batch === which), `statement ${wrong}`);
    await assert.rejects(writes[which] ?? none, ConflictError);
    assert.deepEqual([await writes[1 - which], await none, await all], [[1, 1], [0], [1]]);
  }
  assert.equal(names().length, 9);
});

test("after a conflict the groups are smaller, and then grow again", async (t) => {
  const { writer, answer, answerAll, reports } = stage(t);
  await stored(writer.write([put("taken")]), answer);
  const writes = [put("taken"), ...Array.from({ length: 255 }, (_, at) => put(`k${at}`))]
    .map((statement) => writer.write([statement]));
  const results = Promise.allSettled(writes);
  await turn();
  await answerAll();
  assert.equal((await results).filter(({ status }) => status === "rejected").length, 1);
  // The first group is refused. Two of a quarter are in flight before the next one is larger.
  assert.deepEqual(reports.map(({ batches }) => batches), [1, 256, 64, 64, 127]);
});

test("ten conflicts in a group fail alone, and the other batch is stored", async (t) => {
  const { writer, answer, answerAll, names } = stage(t);
  await stored(writer.write([put("taken")]), answer);
  const batches = [...Array.from({ length: 10 }, () => put("taken")), put("a")];
  const results = Promise.allSettled(batches.map((statement) => writer.write([statement])));
  await turn();
  await answerAll();
  assert.equal((await results).filter(({ status }) => status === "rejected").length, 10);
  assert.deepEqual(names(), ["a", "taken"]);
});

test("a batch with wrong SQL fails alone and is not reported as a refusal", async (t) => {
  const { writer, answer, reports } = stage(t);
  const wrong = assert.rejects(writer.write([sql`INSERT INTO nowhere VALUES (1)`]), {
    name: "Error",
    message: /nowhere/,
  });
  const right = writer.write([put("a")]);
  await turn();
  await answer();
  await answer();
  await wrong;
  assert.deepEqual(await right, [1]);
  assert.deepEqual(reports.map(({ refusal }) => refusal), [undefined, undefined]);
});

test("without the ledger's table nothing is stored, and each write gets the reason", async (t) => {
  const { writer, node, answer, names, reports } = stage(t);
  node.exec("DROP TABLE write_groups");
  const writes = Promise.allSettled([writer.write([put("a")]), writer.write([put("b")])]);
  await turn();
  await answer();
  for (const result of await writes) {
    assert.ok(result.status === "rejected" && /no such table/.test(result.reason.message));
  }
  assert.deepEqual(names(), []);
  assert.deepEqual(reports.map(({ refusal }) => refusal), ["failing"]);
});

test("a batch that has waited too long fails with UnavailableError and is not sent", async (t) => {
  const { writer, asked, answer, pass } = stage(t);
  const sent = ["a", "b"].map(async (name) => writer.write([put(name)]));
  await turn();
  const [late, later] = [writer.write([put("late")]), writer.write([put("late too")])];
  pass(100);
  const inTime = writer.write([put("in time")]);
  const refused = Promise.allSettled([late, later]);
  pass(4_500);
  await answer();
  for (const result of await refused) {
    assert.ok(result.status === "rejected" && result.reason instanceof UnavailableError);
    assert.ok(!(result.reason instanceof OutcomeUnknownError));
  }
  await answer();
  await Promise.all(sent);
  assert.deepEqual(await inTime, [1]);
  assert.ok(!asked.some(({ statements }) => statements.join().includes("late")));
});

test("a batch that is sent again keeps its first deadline of five seconds", async (t) => {
  const { writer, asked, answer, pass, nowMs } = stage(t);
  await stored(writer.write([put("taken")]), answer);
  const startedMs = nowMs();
  const old = writer.write([put("old")]);
  const conflict = assert.rejects(writer.write([put("taken")]), ConflictError);
  await turn();
  pass(2_000);
  const young = writer.write([put("young")]);
  await answer();
  await conflict;
  await answer();
  assert.deepEqual(await Promise.all([old, young]), [[1], [1]]);
  assert.deepEqual(asked.map(({ untilMs }) => untilMs - startedMs), [5_000, 5_000, 5_000]);
  const again = asked.at(-1)?.statements.join() ?? "";
  assert.ok(again.indexOf('"old"') < again.indexOf('"young"'), "the older batch is not first");
});

test("a failed commit is reported with a refusal, a successful one without", async (t) => {
  const { writer, answer, fail, reports, pass } = stage(t);
  for (const error of [new UnavailableError("lost"), new OutcomeUnknownError("lost")]) {
    const write = writer.write([put("a")]);
    await turn();
    pass(300);
    fail(error);
    await assert.rejects(write, error);
  }
  await stored(writer.write([put("a")]), answer);
  const failing = { batches: 1, ms: 300, refusal: "failing" };
  assert.deepEqual(reports, [failing, failing, { batches: 1, ms: 0, refusal: undefined }]);
});

test("if the leader's disk is full, the outcome is unknown and a refusal reported", async (t) => {
  const { writer, asked, reports } = stage(t);
  const writes = ["a", "b"].map((name) =>
    assert.rejects(writer.write([put(name)]), OutcomeUnknownError)
  );
  await turn();
  asked[0]?.resolve([{}, { error: "database or disk is full" }]);
  await Promise.all(writes);
  assert.deepEqual(reports.map(({ refusal }) => refusal), ["failing"]);
});

test("close() stores all earlier writes, even those that must be sent again", async (t) => {
  const { writer, answer, answerAll, names } = stage(t);
  await stored(writer.write([put("taken")]), answer);
  const writes = Promise.allSettled([writer.write([put("a")]), writer.write([put("taken")])]);
  let isClosed = false;
  const closed = writer.close().then(() => isClosed = true);
  await assert.rejects(writer.write([put("late")]), UnavailableError);
  await answerAll(() => assert.equal(isClosed, false));
  await closed;
  assert.deepEqual((await writes).map(({ status }) => status), ["fulfilled", "rejected"]);
  assert.deepEqual(names(), ["a", "taken"]);
});
