import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { passLogin } from "../helpers/authorize_pages.ts";
import { type Gatepost, startGatepost, type TestUser } from "../helpers/gatepost.ts";
import { authorizePath, bearer } from "../helpers/requests.ts";
import { assertProblem, readItems } from "../helpers/responses.ts";

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost();
});
after(() => gatepost.stop());

const PATH = "/consumer/session";
const get = async (token: string, path = PATH) =>
  readItems(await gatepost.api.get(path, bearer(token)));
const end = (token: string, path = PATH) =>
  gatepost.api.send("DELETE", path, { headers: bearer(token) });

/** A user who has logged in with `count` browsers, and has a login token. */
async function logInWith(count: number) {
  const user = await gatepost.createUser();
  const app = await gatepost.createApp();
  const browsers = await Promise.all(
    Array.from({ length: count }, () => gatepost.openLoggedIn(app, user)),
  );
  const isSignedIn = async (browser: (typeof browsers)[number]) =>
    !/name="?password/.test((await gatepost.authorize(browser, app)).text);
  return { user, app, browsers, isSignedIn, token: await gatepost.login(user) };
}

test("a user lists their browser sessions and ends one of them", async () => {
  const { browsers, isSignedIn, token } = await logInWith(2);
  const [first, second, ...more] = await get(token);
  assert.deepEqual(more, []);
  for (const item of [first, second]) {
    const { id, address, created_at: created, seen_at: seen, current, ...rest } = item ?? {};
    assert.match(String(id), /^b[0-9a-f]{24}$/);
    assert.match(String(address), /^10\./);
    assert.ok(Date.parse(String(seen)) >= Date.parse(String(created)));
    assert.deepEqual([current, Object.keys(rest)], [false, ["agent"]]);
  }
  const response = await end(token, `${PATH}/${String(first?.["id"])}`);
  assert.equal(response.status, 204, response.text);
  assert.deepEqual((await get(token)).map(({ id }) => id), [second?.["id"]]);
  const left = await Promise.all(browsers.map(isSignedIn));
  assert.deepEqual(left.toSorted(), [false, true]);
  assertProblem(await end(token, `${PATH}/${String(first?.["id"])}`), 404);
});

test("a user ends all of their browser sessions at once", async () => {
  const { browsers, isSignedIn, token } = await logInWith(2);
  assert.equal((await end(token)).status, 204);
  assert.deepEqual(await get(token), []);
  assert.deepEqual(await Promise.all(browsers.map(isSignedIn)), [false, false]);
});

test("a user sees and ends no session of another user, and an app's token is 403", async () => {
  const { user, app, token } = await logInWith(1);
  const [own] = await get(token);
  const stranger = await gatepost.login(await gatepost.createUser());
  assert.deepEqual(await get(stranger), []);
  assertProblem(await end(stranger, `${PATH}/${String(own?.["id"])}`), 404);
  assert.equal((await end(stranger)).status, 204);
  const { access_token: appToken } = await gatepost.codeTokens(app, user);
  assertProblem(await gatepost.api.get(PATH, bearer(appToken)), 403);
  assertProblem(await end(appToken), 403);
  assert.ok((await get(token)).some(({ id }) => id === own?.["id"]));
});

test("only a token with scope backend lists the sessions of any user", async () => {
  const { user, token } = await logInWith(1);
  const path = (of: Pick<TestUser, "id">) => `/backend/user/${of.id}/session`;
  const [seen] = await get(gatepost.adminToken, path(user));
  const [own] = await get(token);
  assert.equal(seen?.["id"], own?.["id"]);
  assertProblem(await gatepost.api.get(path(user), bearer(token)), 403);
  const unknown = path({ id: `u${"0".repeat(24)}` });
  assertProblem(await gatepost.api.get(unknown, bearer(gatepost.adminToken)), 404);
});

test("a browser stays signed in to two services that differ in their port alone", async () => {
  const other = await startGatepost();
  try {
    const browser = gatepost.openBrowser();
    const visits = await Promise.all([gatepost, other].map(async (at) => {
      const app = await at.createApp({ trusted: true });
      return { at, app, user: await at.createUser() };
    }));
    const ask = ({ at, app }: (typeof visits)[number]) =>
      browser.get(at.url + authorizePath(app));
    for (const visit of visits) {
      const page = await passLogin(browser, await ask(visit), visit.user);
      assert.equal(page.status, 303, page.text);
    }
    for (const visit of visits) assert.equal((await ask(visit)).status, 303);
  } finally {
    await other.stop();
  }
});

test("a session cookie of the old name `gatepost` is accepted, unless it comes twice", async () => {
  const browser = gatepost.openBrowser();
  const app = await gatepost.createApp({ trusted: true });
  const path = authorizePath(app);
  const signedIn = await passLogin(browser, await browser.get(path), await gatepost.createUser());
  assert.equal(signedIn.status, 303, signedIn.text);
  const value = browser.cookies().find(({ name }) => /^gatepost-[\w-]{8}$/.test(name))?.value;
  const visit = (cookie: string) => gatepost.api.get(path, { cookie });
  assert.equal((await visit(`gatepost=${value}`)).status, 303);
  assert.equal((await visit(`gatepost=${value}; gatepost=${value}`)).status, 200);
});

test("a client that sends its cookies back in quotes stays signed in", async () => {
  const browser = gatepost.openBrowser();
  const path = authorizePath(await gatepost.createApp({ trusted: true }));
  const signedIn = await passLogin(browser, await browser.get(path), await gatepost.createUser());
  assert.equal(signedIn.status, 303, signedIn.text);
  const quoted = browser.cookies().map(({ name, value }) => `${name}="${value}";$Path="/"`);
  const cookie = ["$Version=\"1\"", ...quoted].join("; ");
  assert.equal((await gatepost.api.get(path, { cookie })).status, 303);
});
