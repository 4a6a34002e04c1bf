import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type CommandLine, openCommandLine, readItems } from "../helpers/command_line.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { bearer } from "../helpers/requests.ts";

let gatepost: Gatepost;
let cli: CommandLine;

before(async () => {
  gatepost = await startGatepost();
  cli = await openCommandLine({ after }, { folder: gatepost.server.folder });
});

after(() => gatepost.stop());

test("grant list prints the HTTP response, for a user by name and for an app", async () => {
  const user = await gatepost.createUser();
  await gatepost.login(user);

  const byUser = await cli.run("grant", "list", "--user", user.username, "--json");
  const byApp = await cli.run("grant", "list", "--app", "login", "--json");
  const table = await cli.run("grant", "list", "--user", user.username);

  for (const [query, printed] of [[`user=${user.id}`, byUser], ["app=login", byApp]] as const) {
    const response = await gatepost.api.get(`/backend/grant?${query}`, bearer(gatepost.adminToken));
    assert.equal(printed.stdout, `${response.text}\n`);
  }
  assert.deepEqual(readItems(byUser).map((grant) => grant["user"]), [user.id]);
  assert.match(table.stdout, /^ID +USER +APP +TYPE +STATUS +SCOPES +CREATED +EXPIRES$/m);
});

test("grant revoke with an id ends only that grant, within a second", async () => {
  const user = await gatepost.createUser();
  const kept = await gatepost.login(user);
  const lost = await gatepost.login(user);
  const listed = await cli.run("grant", "list", "--user", user.id, "--limit", "1", "--json");

  const revoked = await cli.run("grant", "revoke", String(readItems(listed)[0]?.["id"]));

  assert.equal(revoked.code, 0, revoked.stderr);
  await gatepost.assertDies(lost, performance.now());
  assert.ok(await gatepost.isAlive(kept));
});

test("grant revoke accepts an id or a filter, not both, and refuses unknown ones", async () => {
  const both = await cli.run("grant", "revoke", "g1", "--app", "login");
  const unknown = await cli.run("grant", "revoke", "g1");
  const nobody = await cli.run("grant", "list", "--user", "nobody");

  assert.deepEqual([both.code, unknown.code, nobody.code], [2, 1, 1]);
});

test("audit list prints the HTTP response, by actor, action, target or time", async () => {
  const user = await gatepost.createUser();
  await gatepost.login(user);
  await cli.run("user", "disable", user.username);

  for (const [query, ...args] of [
    [`actor=${user.id}`, "--actor", user.username],
    [`actor=${user.id}`, "--actor", user.id],
    ["actor=cli", "--actor", "cli"],
    [`action=user.login&target=${user.id}`, "--action", "user.login", "--target", user.id],
    ["since=2001-01-01T00%3A00%3A00Z&limit=2", "--since", "2001-01-01T00:00:00Z", "--limit", "2"],
  ] as const) {
    const response = await gatepost.api.get(`/backend/audit?${query}`, bearer(gatepost.adminToken));
    const printed = await cli.run("audit", "list", ...args, "--json");

    assert.equal(printed.stdout, `${response.text}\n`, args.join(" "));
    assert.ok(readItems(printed).length > 0, args.join(" "));
  }
  const table = await cli.run("audit", "list", "--target", user.id);
  assert.match(table.stdout, /^TIME +ACTOR +APP +ACTION +TARGET +ADDRESS$/m);
  assert.match(table.stdout, new RegExp(`^\\S+ \\S+Z +cli +- +user.change +${user.id} +-$`, "m"));
});

test("audit list refuses an unknown actor and a wrong time", async () => {
  const nobody = await cli.run("audit", "list", "--actor", "nobody");
  const noTime = await cli.run("audit", "list", "--since", "yesterday", "--until", "now");

  assert.deepEqual([nobody.code, noTime.code], [1, 2]);
  assert.match(noTime.stderr, /since: .*\n.*until: /);
});

test("subscriptions are listed, paused, disabled, activated and deleted", async () => {
  const token = await gatepost.login(await gatepost.createUser());
  const subscription = { event: "order.created", endpoint: "https://shop.example/hook" };
  const made = await gatepost.api.postJson("/consumer/subscription", subscription, bearer(token));
  const { id } = JSON.parse(made.text) as { id: string };
  const statusNow = async () => {
    const response = await gatepost.api.get(`/consumer/subscription/${id}`, bearer(token));
    return response.status === 200 ? JSON.parse(response.text).status : response.status;
  };

  const json = await cli.run("subscription", "list", "--json");
  const response = await gatepost.api.get("/backend/subscription", bearer(gatepost.adminToken));
  assert.equal(json.stdout, `${response.text}\n`);
  for (const status of ["paused", "disabled", "active"]) {
    const set = await cli.run("subscription", "set", id, "--status", status);
    assert.equal(set.code, 0, set.stderr);
    assert.match(set.stdout, new RegExp(`^  status +${status}$`, "m"));
    assert.equal(await statusNow(), status);
  }
  const wrong = await cli.run("subscription", "set", id, "--status", "deleted");
  const missing = await cli.run("subscription", "set", id);
  const removed = await cli.run("subscription", "delete", id);
  const again = await cli.run("subscription", "delete", id);
  assert.deepEqual([wrong.code, missing.code, removed.code, again.code], [2, 2, 0, 1]);
  assert.equal(await statusNow(), 404);
});

// Last, since it ends the tokens of all tests.
test("key withdraw ends every token of the key within a second, with an audit entry", async () => {
  const user = await gatepost.createUser();
  const token = await gatepost.login(user);
  const listed = readItems(await cli.run("key", "list", "--json"));
  const kid = String(listed.find(({ status }) => status === "signing")?.["kid"]);

  const withdrawn = await cli.run("key", "withdraw", kid);
  await gatepost.assertDies(token, performance.now());
  const again = await cli.run("key", "withdraw", kid);
  const left = readItems(await cli.run("key", "list", "--json"));
  const audit = readItems(await cli.run("audit", "list", "--action", "key.withdraw", "--json"));

  assert.deepEqual([withdrawn.code, again.code], [0, 1]);
  assert.match(again.stderr, /There is no such key/);
  assert.equal(left.filter(({ status }) => status === "signing").length, 1);
  assert.ok(left.every((key) => key["kid"] !== kid));
  assert.deepEqual(audit.map(({ actor, target }) => [actor, target]), [["cli", kid]]);
  assert.ok(await gatepost.isAlive(await gatepost.login(user)));
});
