import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import { isOnRqlite, queryFile } from "../helpers/engine.ts";
import { assertProblem, expectStatus, readItems, readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

const METRICS_TOKEN = "a-secret-that-is-long-enough";
const MODULE = `
export const broken = { name: "broken", every: "1d", run() { throw new Error("no luck today"); } };
`;

let stage: EventStage;
before(async () => {
  stage = await startEventStage({ GATEPOST_METRICS_TOKEN: METRICS_TOKEN }, { "jobs.mjs": MODULE });
});
after(() => stage.stop());

async function listProblems() {
  const items = readItems(await stage.call("GET", "/backend/problem", stage.admin));
  return items.filter(({ kind }) => kind !== "disk"); // depends on this machine
}

const FUTURE = { until: new Date(Date.now() + 3_600_000).toISOString() };

async function findAudited(action: string) {
  const path = `/backend/audit?action=${action}`;
  return readItems(await stage.call("GET", path, stage.admin)).map(({ target }) => target);
}

test("a risky setting, a failing cronjob and a failing subscription are problems", async () => {
  const before = await listProblems();
  const risk = before.find(({ id }) => id === "setting-GATEPOST_SECRET_KEY");
  assert.match(String(risk?.["detail"]), /not encrypted/);
  assert.equal(before.some(({ kind }) => kind === "failing" || kind === "cronjob"), false);

  await expectStatus(202, stage.call("POST", "/backend/cronjob/broken/run", stage.admin));
  const subscription = await stage.subscribe(await stage.newConsumer(), "problem.failing", 500);
  await stage.dispatch("problem.failing", {});
  await stage.deliveries(subscription, "failed");
  await until(async () => (await listProblems()).some(({ kind }) => kind === "cronjob"));
  const problems = await listProblems();
  const kinds = problems.map(({ kind }) => kind);
  assert.deepEqual(kinds.slice(0, 2), ["failing", "cronjob"], "the worst first");
  assert.equal(problems[1]?.["detail"], "no luck today");
  const failing = problems[0] ?? {};
  assert.equal(failing["id"], `failing-${subscription.id}`);
  assert.match(String(failing["title"]), /127\.0\.0\.1/);
  const linked = await stage.call("GET", String(failing["link"]), stage.admin);
  assert.equal(readObject(linked)["failing_since"], failing["since"]);
});

test("sign-ins that the throttle refuses are a problem", async () => {
  const attempt = { username: "admin", password: "wrong" };
  const headers = { "x-forwarded-for": "192.0.2.77" };
  const tryOnce = () => stage.gatepost.api.postJson("/consumer/login", attempt, headers);
  await until(async () => (await tryOnce()).status === 429);
  await until(async () => (await listProblems()).some(({ kind }) => kind === "sign_in"));
  assert.equal((await listProblems())[0]?.["kind"], "sign_in");
});

test("a muted problem is the last one until it is unmuted, and the audit has both", async () => {
  const [first] = await listProblems();
  const path = `/backend/problem/${String(first?.["id"])}/mute`;
  await expectStatus(204, stage.call("PUT", path, stage.admin, FUTURE));
  const last = (await listProblems()).at(-1);
  assert.deepEqual([last?.["id"], last?.["muted_until"]], [first?.["id"], FUTURE.until]);
  await expectStatus(204, stage.call("DELETE", path, stage.admin));
  assert.deepEqual((await listProblems())[0]?.["id"], first?.["id"]);
  await expectStatus(404, stage.call("DELETE", path, stage.admin));
  assert.deepEqual(await findAudited("problem.mute"), [first?.["id"]]);
  assert.deepEqual(await findAudited("problem.unmute"), [first?.["id"]]);
});

test("an unknown problem cannot be muted, nor a problem until a time in the past", async () => {
  const mute = (id: string, body: object) =>
    stage.call("PUT", `/backend/problem/${id}/mute`, stage.admin, body);
  assertProblem(await mute("nothing", FUTURE), 404);
  const [first] = await listProblems();
  const past = await mute(String(first?.["id"]), { until: "2020-01-01T00:00:00Z", x: 1 });
  assert.deepEqual(assertProblem(past, 400), ["/until", "/x"]);
  assert.deepEqual(assertProblem(await mute(String(first?.["id"]), {}), 400), ["/until"]);
});

test("the configuration is shown as it is in effect, without secrets", async () => {
  const response = await stage.call("GET", "/backend/config?limit=200", stage.admin);
  const values = new Map(readItems(response).map(({ name, value }) => [name, value]));
  assert.equal(values.get("GATEPOST_RESEND_DELAYS"), "20ms");
  assert.equal(values.get("GATEPOST_METRICS_TOKEN"), "set");
  assert.equal(values.get("GATEPOST_SECRET_KEY"), "none");
  assert.equal(values.get("GATEPOST_ADMIN_PASSWORD"), "set");
  assert.doesNotMatch(response.text, new RegExp(`${METRICS_TOKEN}|correct horse`));
});

test("a backup is a complete and private file beside the database", async () => {
  const response = await stage.call("POST", "/backend/backup", stage.admin);
  if (isOnRqlite) return void assertProblem(response, 409);
  assert.equal(response.status, 201, response.text);
  const { file, bytes } = readObject(response);
  assert.match(String(file), /^gatepost-\d{17}-[0-9a-f]{8}\.db$/);
  const path = join(stage.gatepost.server.folder, String(file));
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(statSync(path).size, bytes);
  assert.equal(existsSync(`${path}.partial`), false);
  const entries = queryFile(path, "SELECT target FROM audit WHERE action = 'backup.create'");
  assert.deepEqual(entries.map(({ target }) => target), [file]);
  assert.deepEqual(await findAudited("backup.create"), [file]);
});
