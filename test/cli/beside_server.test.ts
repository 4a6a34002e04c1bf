import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CommandLine, openCommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { type Gatepost, PASSWORD, SOURCE_ENTRY, startGatepost } from "../helpers/gatepost.ts";
import { startServer } from "../helpers/process.ts";
import { type Receiver, startReceiver } from "../helpers/receiver.ts";
import { bearer } from "../helpers/requests.ts";

let gatepost: Gatepost;
let receiver: Receiver;
let cli: CommandLine;

before(async () => {
  receiver = await startReceiver();
  const env = {
    GATEPOST_CALLBACK_ALLOW: "127.0.0.1",
    GATEPOST_DISTRIBUTE_INTERVAL: "50ms",
    GATEPOST_RESEND_DELAYS: "none",
  };
  gatepost = await startGatepost({ env });
  cli = await openCommandLine({ after }, { folder: gatepost.server.folder, ownProcess: true });
});

after(async () => {
  await gatepost.stop();
  await receiver.close();
});

test("a user that the command line has added can log in at once", async () => {
  const added = await cli.runWith(
    { stdin: `${PASSWORD}\n` },
    ...["user", "add", "alice", "--password-stdin", "--json"],
  );

  const id = String(readJson(added)["id"]);
  await gatepost.login({ id, username: "alice", password: PASSWORD });
});

test("a user can log in with the generated password", async () => {
  const added = await cli.run("user", "add", "bob");

  const [, password = ""] = /^ {2}password +(\S+)$/m.exec(added.stdout) ?? [];
  await gatepost.login({ id: "", username: "bob", password });
});

test("a user that the command line disables is refused within a second", async () => {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);
  assert.ok(await gatepost.isAlive(token));

  const disabled = await cli.run("user", "disable", user.username);
  const atMs = performance.now();

  assert.equal(disabled.code, 0, disabled.stderr);
  await gatepost.assertDies(token, atMs);
  const response = await gatepost.api.postJson("/consumer/login", user);
  assert.equal(response.status, 401);
});

test("an app that the command line has added gets tokens until it is disabled", async () => {
  const url = "https://app.example";
  const added = readJson(await cli.run("app", "add", "Shop", "--url", url, "--json"));
  const app = {
    id: String(added["client_id"]),
    secret: String(added["client_secret"]),
    url,
    redirectUri: `${url}/cb`,
  };
  const fields = { grant_type: "client_credentials", scope: "consumer" };
  const response = await gatepost.token(app, fields);
  assert.equal(response.status, 200, response.text);
  const { access_token: token }: { access_token: string } = JSON.parse(response.text);
  assert.ok(await gatepost.isAlive(token));

  await cli.run("app", "disable", app.id);
  const atMs = performance.now();

  await gatepost.assertDies(token, atMs);
  const refused = await gatepost.token(app, fields);
  assert.deepEqual([refused.status, JSON.parse(refused.text).error], [401, "invalid_client"]);
});

test("a secret that the command line replaces with --revoke is no longer valid", async () => {
  const app = await gatepost.createApp();
  const fields = { grant_type: "client_credentials" };

  const rotated = readJson(await cli.run("app", "rotate-secret", app.id, "--revoke", "--json"));

  assert.equal((await gatepost.token(app, fields)).status, 401);
  const renewed = { ...app, secret: String(rotated["client_secret"]) };
  assert.equal((await gatepost.token(renewed, fields)).status, 200);
});

test("grants that the command line revokes end in a second; the user can log in", async () => {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);

  await cli.run("grant", "revoke", "--user", user.username);
  await gatepost.assertDies(token, performance.now());

  assert.ok(await gatepost.isAlive(await gatepost.login(user)));
});

test("the command line prints what HTTP returns to an administrator", async () => {
  const [user, app] = [await gatepost.createUser(), await gatepost.createApp()];
  for (const [path, ...args] of [
    ["/backend/user", "user", "list"],
    ["/backend/app", "app", "list"],
    ["/backend/key", "key", "list"],
    ["/backend/event?limit=3", "event", "list", "--limit", "3"],
    [`/backend/user/${user.id}`, "user", "show", user.username],
    [`/backend/app/${app.id}`, "app", "show", app.id],
  ] as const) {
    const response = await gatepost.api.get(path, bearer(gatepost.adminToken));
    const printed = await cli.run(...args, "--json");

    assert.equal(printed.stdout, `${response.text}\n`, args.join(" "));
  }
});

test("an event that the command line dispatches is delivered, and resent", async () => {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);
  receiver.answer("/hook", 500);
  const subscribed = await gatepost.api.postJson(
    "/consumer/subscription",
    { event: "order.created", endpoint: `${receiver.url}/hook` },
    bearer(token),
  );
  assert.equal(subscribed.status, 201, subscribed.text);

  await cli.run("event", "dispatch", "order.created", '{"id": 7}');
  const [first] = await receiver.waitFor(1, 5_000, "/hook");
  receiver.answer("/hook", 204);
  let resent: Readonly<Record<string, unknown>> = {};
  // The attempt is recorded after its response.
  for (let tries = 0; tries < 10 && resent["count"] !== 1; tries++) {
    resent = readJson(await cli.run("delivery", "resend", "--failed", "--json"));
  }
  const requests = await receiver.waitFor(2, 5_000, "/hook");

  assert.equal(resent["count"], 1);
  assert.deepEqual(requests.map(({ body }) => body.toString()), ['{"id":7}', '{"id":7}']);
  const delivery = String(first?.headers["webhook-id"]);
  assert.equal(requests[1]?.headers["webhook-id"], delivery);

  for (const status of ["500", "204"]) {
    let shown = "";
    for (let tries = 0; tries < 10 && !shown.includes(status); tries++) {
      shown = (await cli.run("delivery", "show", delivery)).stdout;
    }
    assert.match(shown, new RegExp(`^ {2}\\d{4}-\\S+ \\S+Z +1 +${status} `, "m"), shown);
  }
  const { event } = readJson(await cli.run("delivery", "show", delivery, "--json"));
  const shown = (await cli.run("event", "show", String(event))).stdout;
  assert.match(shown, /^ {2}data +\{"id":7\}$/m);
  assert.match(shown, new RegExp(`^ {2}${delivery} +delivered `, "m"));
});

test("a server that first starts on a database with a user makes no admin", async (t) => {
  const alone = await openCommandLine(t, { ownProcess: true });
  await alone.runWith({ stdin: PASSWORD }, "user", "add", "ops", "--admin", "--password-stdin");

  const server = await startServer({ entry: SOURCE_ENTRY, folder: alone.folder });
  const listed = await alone.run("user", "list", "--json");
  await server.stop();

  assert.doesNotMatch(server.stderr(), /admin/);
  assert.deepEqual(readItems(listed).map(({ username }) => username), ["ops"]);
});
