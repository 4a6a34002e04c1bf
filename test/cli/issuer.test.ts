import assert from "node:assert/strict";
import { test } from "node:test";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";
import { startForeignIssuer, waitUntilAlive } from "../helpers/foreign_issuer.ts";
import { startGatepost, waitUntilDead } from "../helpers/gatepost.ts";

test("an issuer is added, changed and deleted beside a running server", async (t) => {
  const gatepost = await startGatepost({ env: { GATEPOST_CALLBACK_ALLOW: "127.0.0.1" } });
  t.after(() => gatepost.stop());
  const issuer = await startForeignIssuer(gatepost.issuer);
  t.after(() => issuer.close());
  const cli = await openCommandLine(t, {
    folder: gatepost.server.folder,
    env: { GATEPOST_CALLBACK_ALLOW: "127.0.0.1", GATEPOST_BASE_URL: gatepost.issuer },
  });

  const own = await cli.run("issuer", "add", gatepost.issuer, "--scope", "consumer");
  assert.equal(own.code, 2);
  assert.match(own.stderr, /issuer: Must not be this service/);
  const guarded = { env: { GATEPOST_CALLBACK_ALLOW: "" } };
  const refused = await cli.runWith(guarded, "issuer", "add", issuer.url, "--scope", "consumer");
  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /unreachable/);
  assert.equal(issuer.receiver.count(), 0);

  const added = await cli.run("issuer", "add", issuer.url, "--scope", "consumer orders", "--json");
  assert.equal(added.code, 0, added.stderr);
  const id = String(readJson(added)["id"]);
  const token = issuer.token();
  await waitUntilAlive(gatepost, token);
  const [principal] = readItems(await cli.run("principal", "list", "--issuer", id, "--json"));
  const sub = String(principal?.["id"]);
  assert.equal(principal?.["subject"], "alice");
  assert.match((await cli.run("issuer", "list")).stdout, /active/);
  assert.match((await cli.run("issuer", "show", id)).stdout, /consumer orders/);
  assert.match((await cli.run("principal", "show", sub)).stdout, /alice/);

  const disabled = await cli.run("principal", "set", sub, "--status", "disabled");
  assert.equal(disabled.stdout.split("\n")[0], `Principal ${sub} has been disabled.`);
  await waitUntilDead(gatepost, token);
  assert.equal((await cli.run("principal", "delete", sub, "--yes")).code, 0);
  const set = await cli.run("issuer", "set", id, "--scope", "orders", "--jwt-type", "--json");
  assert.deepEqual([readJson(set)["scopes"], readJson(set)["jwt_type"]], [["orders"], true]);
  assert.equal((await cli.run("issuer", "set", id)).code, 2);
  assert.equal((await cli.run("issuer", "delete", id, "--yes")).code, 0);
  await waitUntilDead(gatepost, issuer.token());
  assert.deepEqual(readItems(await cli.run("issuer", "list", "--json")), []);
});

test("with the authorization server off the command token fails, and check warns", async (t) => {
  const cli = await openCommandLine(t, { env: { GATEPOST_AUTHORIZATION_SERVER: "off" } });
  assert.match((await cli.run("check")).stdout, /none yet[^]*no issuer is active/);
  const token = await cli.run("token");
  assert.equal(token.code, 1);
  assert.match(token.stderr, /GATEPOST_AUTHORIZATION_SERVER is off/);
  assert.equal((await cli.run("issuer", "list")).code, 0); // makes the database
  assert.match((await cli.run("check")).stdout, /no issuer is active/);
});
