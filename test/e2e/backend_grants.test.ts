import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Item, startBackendStage } from "../helpers/backend_stage.ts";
import type { TestApp, TestUser } from "../helpers/gatepost.ts";
import { assertProblem, expectStatus, readObject, readTokens } from "../helpers/responses.ts";

const { gatepost, send, list, createPasswordApp, grantOf } = await startBackendStage();
after(() => gatepost.stop());

test("grants are listed newest first, and can be filtered by user and by app", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp();
  await gatepost.login(user);
  await gatepost.passwordTokens(app, user);
  await gatepost.passwordTokens(app, await gatepost.createUser());
  const ofUser = await list(`/backend/grant?user=${user.id}`);
  assert.deepEqual(ofUser.map((grant) => [grant["app"], grant["type"]]), [
    [app.id, "password"],
    ["login", "login"],
  ]);
  assert.equal((await list(`/backend/grant?app=${app.id}`)).length, 2);
  const [grant] = await list(`/backend/grant?app=${app.id}&user=${user.id}`);
  assert.match(String(grant?.["name"]), /^App-/);
  assert.deepEqual({ ...grant, id: "", name: "", created_at: "", expires_at: "" }, {
    id: "",
    user: user.id,
    app: app.id,
    type: "password",
    name: "",
    scopes: ["consumer"],
    status: "active",
    created_at: "",
    last_used_at: null,
    expires_at: "",
  });
  assert.ok(Date.parse(String(grant?.["expires_at"])) > Date.now() + 29 * 86_400_000);
});

test("a grant of an app for itself has no user", async () => {
  const app = await createPasswordApp();
  readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const [grant] = await list(`/backend/grant?app=${app.id}`);
  assert.deepEqual([grant?.["user"], grant?.["type"]], [null, "client_credentials"]);
});

test("a list of grants continues at its cursor", async () => {
  const user = await gatepost.createUser();
  for (let i = 0; i < 3; i++) await gatepost.login(user);
  const path = `/backend/grant?user=${user.id}&limit=2`;
  const first = readObject(await send("GET", path));
  assert.ok(typeof first["next_cursor"] === "string");
  const rest = readObject(await send("GET", `${path}&cursor=${first["next_cursor"]}`));
  const ids = [first, rest].flatMap((page) => (page["items"] as Item[]).map(({ id }) => id));
  assert.equal(new Set(ids).size, 3);
  assert.deepEqual(ids, ids.toSorted().reverse());
  assert.equal(rest["next_cursor"], null);
});

test("revoking a grant ends its tokens, and the list shows it as revoked", async () => {
  const user = await gatepost.createUser();
  const app = await createPasswordApp();
  const tokens = await gatepost.passwordTokens(app, user);
  const spared = await gatepost.passwordTokens(app, await gatepost.createUser());
  const { id } = await grantOf(user, app.id);
  await expectStatus(204, send("DELETE", `/backend/grant/${id}`));
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  assert.equal((await gatepost.refresh(app, tokens.refresh_token)).status, 400);
  assert.equal(await gatepost.isAlive(spared.access_token), true);
  const grant = await grantOf(user, app.id);
  assert.equal(grant["status"], "revoked");
  assert.ok(Date.parse(String(grant["revoked_at"])) <= Date.now());
});

test("revoking a grant that does not exist is 404", async () => {
  await expectStatus(404, send("DELETE", "/backend/grant/g0"));
});

test("revoking by user ends that user's browser session too", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp({ trusted: true });
  const browser = gatepost.openBrowser();
  await gatepost.allow(browser, app, user);
  assert.equal((await gatepost.authorize(browser, app)).status, 303);
  await expectStatus(204, send("POST", "/backend/grant/revoke", { user: user.id }));
  const page = await gatepost.authorize(browser, app);
  assert.ok(page.forms()[0]?.inputs.some(({ name }) => name === "password"), page.text);
});

test("revoking by user ends every grant of that user and of nobody else", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const app = await createPasswordApp();
  const tokens = await gatepost.passwordTokens(app, user);
  const login = await gatepost.login(user);
  const spared = await gatepost.login(neighbour);
  await expectStatus(204, send("POST", "/backend/grant/revoke", { user: user.id }));
  assert.deepEqual(
    [
      await gatepost.isAlive(tokens.access_token),
      await gatepost.isAlive(login),
      await gatepost.isAlive(spared),
    ],
    [false, false, true],
  );
  assert.equal((await gatepost.refresh(app, tokens.refresh_token)).status, 400);
  const statuses = (await list(`/backend/grant?user=${user.id}`)).map(({ status }) => status);
  assert.deepEqual(statuses, ["revoked", "revoked"]);
  assert.equal(await gatepost.isAlive(await gatepost.login(user)), true, "they may log in again");
});

test("revoking by app ends every grant of that app and of no other", async () => {
  const user = await gatepost.createUser();
  const [app, another] = [await createPasswordApp(), await createPasswordApp()];
  const tokens = await gatepost.passwordTokens(app, user);
  const own = readTokens(await gatepost.token(app, { grant_type: "client_credentials" }));
  const spared = await gatepost.passwordTokens(another, user);
  await expectStatus(204, send("POST", "/backend/grant/revoke", { app: app.id }));
  assert.deepEqual(
    [
      await gatepost.isAlive(tokens.access_token),
      await gatepost.isAlive(own.access_token),
      await gatepost.isAlive(spared.access_token),
    ],
    [false, false, true],
  );
  assert.equal((await gatepost.refresh(app, tokens.refresh_token)).status, 400);
});

test("revoking by user and app ends only that user's grants to that app", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const app = await createPasswordApp();
  const tokens = await gatepost.passwordTokens(app, user);
  const spared = [
    (await gatepost.passwordTokens(app, neighbour)).access_token,
    await gatepost.login(user),
  ];
  await expectStatus(204, send("POST", "/backend/grant/revoke", { user: user.id, app: app.id }));
  assert.equal(await gatepost.isAlive(tokens.access_token), false);
  for (const token of spared) assert.equal(await gatepost.isAlive(token), true);
});

test("a code that was not yet exchanged ends with the grants of its user or app", async () => {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  for (const body of [{ user: user.id }, { user: user.id, app: app.id }, { app: app.id }]) {
    const code = await gatepost.code(app, user);
    await expectStatus(204, send("POST", "/backend/grant/revoke", body));
    const response = await gatepost.token(app, { grant_type: "authorization_code", code });
    assert.equal(readObject(response)["error"], "invalid_grant", JSON.stringify(body));
  }
});

test("a revocation ends the consents of its user and app, and no others", async () => {
  const [user, neighbour] = [await gatepost.createUser(), await gatepost.createUser()];
  const [app, another] = [await gatepost.createApp(), await gatepost.createApp()];
  const trusted = await gatepost.createApp({ trusted: true });
  const isAsked = async (by: TestUser, at: TestApp) => {
    const browser = gatepost.openBrowser();
    await gatepost.allow(browser, trusted, by);
    return (await gatepost.authorize(browser, at)).status === 200;
  };
  const table = [
    [{ user: user.id, app: app.id }, [true, false, false]],
    [{ user: user.id }, [true, true, false]],
    [{ app: app.id }, [true, false, true]],
  ] as const;
  const pairs = [[user, app], [user, another], [neighbour, app]] as const;
  for (const [body, expected] of table) {
    for (const [by, at] of pairs) await gatepost.allow(gatepost.openBrowser(), at, by);
    await expectStatus(204, send("POST", "/backend/grant/revoke", body));
    const asked = [];
    for (const [by, at] of pairs) asked.push(await isAsked(by, at));
    assert.deepEqual(asked, expected, JSON.stringify(body));
  }
});

const BAD_REVOCATIONS: readonly (readonly [string, unknown, readonly string[]])[] = [
  ["nothing", {}, ["/user"]],
  ["a list", [], [""]],
  ["numbers", { user: 1, app: 2 }, ["/app", "/user"]],
  ["invalid ids", { user: "admin", app: "shop" }, ["/app", "/user"]],
  ["an unknown member", { app: "login", all: true }, ["/all"]],
];

for (const [what, body, pointers] of BAD_REVOCATIONS) {
  test(`a revocation by ${what} is refused with every error`, async () => {
    const errors = assertProblem(await send("POST", "/backend/grant/revoke", body), 400);
    assert.deepEqual(errors, pointers);
  });
}

test("a revocation by a user or an app that does not exist is 404", async () => {
  const { id } = await gatepost.createUser();
  const none = (kind: string) => kind + id.slice(1);
  await expectStatus(404, send("POST", "/backend/grant/revoke", { app: none("a") }));
  const gone = await gatepost.createUser();
  await send("DELETE", `/backend/user/${gone.id}`);
  await expectStatus(404, send("POST", "/backend/grant/revoke", { user: gone.id }));
});

for (const query of ["user=admin", "app=shop", "limit=0", "cursor=.", "user=u1&app=1"]) {
  test(`a list of grants with ${query} is refused`, async () => {
    await expectStatus(400, send("GET", `/backend/grant?${query}`));
  });
}
