import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { openCommandLine, readItems, readJson } from "../helpers/command_line.ts";

const URL_OPTION = ["--url", "https://shop.example/"];

test("app add shows the client_id and, once, the secret", async (t) => {
  const cli = await openCommandLine(t);

  const added = await cli.run("app", "add", "Shop", ...URL_OPTION);

  assert.equal(added.code, 0, added.stderr);
  assert.match(added.stdout, /^App Shop has been added\. Its secret is shown here only\.$/m);
  assert.match(added.stdout, /^ {2}client_id +a[0-9a-z]+$/m);
  const [, secret = ""] = /^ {2}client_secret +([\w-]{43})$/m.exec(added.stdout) ?? [];
  assert.notEqual(secret, "");
  assert.ok(!(await cli.run("app", "list", "--json")).stdout.includes(secret));
});

test("app add passes every option to the backend", async (t) => {
  const cli = await openCommandLine(t);

  const added = await cli.run(
    ...["app", "add", "Shop", ...URL_OPTION, "--json", "--trusted", "--resource-server"],
    "--require-pkce",
    ...["--scope", "a b", "--grant", "password", "--grant", "refresh_token"],
    ...["--redirect-uri", "https://shop.example/1"],
    ...["--redirect-uri", "https://shop.example/2?a=b,c", "--rate", "100/1m"],
  );

  const { client_id, client_secret, created_at, ...rest } = readJson(added);
  assert.match(String(client_id), /^a/);
  assert.match(String(client_secret), /^[\w-]{43}$/);
  assert.ok(!Number.isNaN(Date.parse(String(created_at))));
  assert.deepEqual(rest, {
    name: "Shop",
    url: "https://shop.example/",
    type: "confidential",
    scopes: ["a", "b"],
    grants: ["refresh_token", "password"],
    redirect_uris: ["https://shop.example/1", "https://shop.example/2?a=b,c"],
    redirect_rule: "listed",
    trusted: true,
    resource_server: true,
    rate: "100/1m",
    require_pkce: true,
    jwks: null,
    metadata_url: null,
    owner: null,
    status: "active",
  });
});

test("app add --public gives no secret", async (t) => {
  const cli = await openCommandLine(t);

  const args = ["app", "add", "Phone", "--url", "http://127.0.0.1", "--public"];
  const people = await cli.run(...args);
  const json = await cli.run(...args, "--json");

  assert.doesNotMatch(people.stdout, /secret is|client_secret/);
  assert.equal(readJson(json)["type"], "public");
  assert.equal(readJson(json)["client_secret"], undefined);
});

test("app add reports every error at once, and adds nothing", async (t) => {
  const cli = await openCommandLine(t);

  const refused = await cli.run(
    ...["app", "add", "Shop", "--url", "http://shop.example/", "--grant", "implicit"],
  );

  assert.equal(refused.code, 2);
  assert.match(refused.stderr, /^ {2}url: Must be /m);
  assert.match(refused.stderr, /^ {2}grants 1: Must be one of/m);
  assert.deepEqual(readItems(await cli.run("app", "list", "--json")), []);
});

test("app set changes only what is given, and can reset a flag and empty a list", async (t) => {
  const cli = await openCommandLine(t);
  const added = readJson(await cli.run(
    ...["app", "add", "Shop", ...URL_OPTION, "--json", "--trusted"],
    ...["--redirect-uri", "https://shop.example/1"],
  ));
  const id = String(added["client_id"]);

  const { client_secret: _, ...expected } = added;
  const untrusted = readJson(await cli.run("app", "set", id, "--no-trusted", "--json"));
  assert.deepEqual(untrusted, { ...expected, trusted: false });
  const emptied = readJson(await cli.run("app", "set", id, "--redirect-uri", "", "--json"));
  assert.deepEqual(emptied["redirect_uris"], []);
  const unchanged = await cli.run("app", "set", id);
  assert.equal(unchanged.code, 2);
  assert.match(unchanged.stderr, /app set needs --name, --url, .* or --status \(/);
});

test("app disable disables an app, and app set --status active enables it", async (t) => {
  const cli = await openCommandLine(t);
  const added = readJson(await cli.run("app", "add", "Shop", ...URL_OPTION, "--json"));
  const id = String(added["client_id"]);

  const disabled = await cli.run("app", "disable", id);
  assert.match(disabled.stdout, /App Shop has been disabled\./);
  assert.equal(readItems(await cli.run("app", "list", "--json"))[0]?.["status"], "disabled");
  const active = await cli.run("app", "set", id, "--status", "active", "--json");
  assert.equal(readJson(active)["status"], "active");
});

test("app rotate-secret shows a new secret, and refuses a public app", async (t) => {
  const cli = await openCommandLine(t);
  const shop = readJson(await cli.run("app", "add", "Shop", ...URL_OPTION, "--json"));
  const phone = readJson(
    await cli.run("app", "add", "Phone", "--url", "http://127.0.0.1", "--public", "--json"),
  );

  const id = String(shop["client_id"]);
  const rotated = readJson(await cli.run("app", "rotate-secret", id, "--json"));
  const refused = await cli.run("app", "rotate-secret", String(phone["client_id"]));

  assert.equal(rotated["client_id"], shop["client_id"]);
  assert.match(String(rotated["client_secret"]), /^[\w-]{43}$/);
  assert.notEqual(rotated["client_secret"], shop["client_secret"]);
  assert.deepEqual([refused.code, refused.stderr], [1, "gatepost: A public app has no secret.\n"]);
});

test("app delete deletes an app once, and no client_id leads to another path", async (t) => {
  const cli = await openCommandLine(t);
  const added = readJson(await cli.run("app", "add", "Shop", ...URL_OPTION, "--json"));
  const id = String(added["client_id"]);

  const paths = ["..", "x/secret", `../user/${id}`, `${id}/secret`, `${id}?limit=1`, "%"];
  for (const path of paths) {
    assert.equal((await cli.run("app", "delete", path)).code, 1, path);
  }
  assert.equal((await cli.run("app", "delete", "")).code, 2);
  assert.equal((await cli.run("app", "delete", id)).code, 0);
  const again = await cli.run("app", "delete", id);
  assert.deepEqual([again.code, again.stderr], [1, "gatepost: There is no such app.\n"]);
});

test("app add --jwks registers public keys in place of a secret; set changes them", async (t) => {
  const cli = await openCommandLine(t);
  const key = generateKeyPairSync("ed25519").publicKey.export({ format: "jwk" });
  const jwks = { keys: [{ ...key, kid: "k1" }] };
  const json = JSON.stringify(jwks);
  const args = ["app", "add", "Robot", ...URL_OPTION, "--json", "--jwks"];

  const added = readJson(await cli.run(...args, json));
  const piped = readJson(await cli.runWith({ stdin: json }, ...args, "-"));
  assert.deepEqual([added["jwks"], piped["jwks"]], [jwks, jwks]);
  assert.equal(added["client_secret"], undefined);

  const id = String(added["client_id"]);
  assert.equal((await cli.run("app", "rotate-secret", id)).code, 1);
  const changed = await cli.run("app", "set", id, "--jwks", "none", "--json");
  assert.equal(readJson(changed)["jwks"], null);
  assert.equal((await cli.run("app", "rotate-secret", id)).code, 0);
});

test("app add --jwks exits 2 for text that is not JSON, and does not show it", async (t) => {
  const cli = await openCommandLine(t);

  const { code, stderr } = await cli.run("app", "add", "Robot", ...URL_OPTION, "--jwks", "{secret");

  assert.equal(code, 2);
  assert.match(stderr, /the JWK set is not JSON/);
  assert.ok(!stderr.includes("secret"));
});

test("app add gives an app an owner by name, and app set removes the owner", async (t) => {
  const cli = await openCommandLine(t);
  const { id } = readJson(await cli.run("user", "add", "alice", "--json"));
  const { client_id: app } = readJson(
    await cli.run("app", "add", "Shop", ...URL_OPTION, "--owner", "alice", "--json"),
  );
  const owned = readItems(await cli.run("app", "list", "--owner", "alice", "--json"));
  assert.deepEqual(owned.map(({ owner }) => owner), [id]);
  const none = await cli.run("app", "set", String(app), "--owner", "none", "--json");
  assert.equal(readJson(none)["owner"], null);
});
