import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { newSecret, sha256 } from "../../src/base/secret.ts";
import { insertSession } from "../../src/store/sessions.ts";
import { assertConsentPage, assertLoginPage, passLogin } from "../helpers/authorize_pages.ts";
import {
  assertCodePage,
  decide,
  DEVICE_GRANT,
  newDevice,
  openVerify,
  pollFor,
  typeCode,
  VERIFY,
} from "../helpers/device.ts";
import { addUser, openDatabaseAt } from "../helpers/database.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { bearer, newAddress } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";
import { until } from "../helpers/until.ts";

type Fields = Readonly<Record<string, string>>;

const grants = [DEVICE_GRANT, "authorization_code"];
const scopes = ["consumer", "orders"];

let gatepost: Gatepost;
let user: TestUser;
let app: TestApp;
before(async () => {
  gatepost = await startGatepost();
  user = await gatepost.createUser({ scopes });
  app = await gatepost.createApp({ scopes, grants, trusted: true, name: "Living Room TV" });
});
after(() => gatepost.stop());

const OWN_PAGE = { "sec-fetch-site": "same-origin", origin: "null" };
const WAITING = "authorization_pending";

/** What a page's form would send, without its buttons. */
const fieldsOf = (page: ClientResponse): Fields => page.forms()[0]?.fields ?? {};
const actionOf = (page: ClientResponse): string =>
  new URL(page.forms()[0]?.action ?? "", page.url).href;

const codeIn = (page: ClientResponse) => fieldsOf(page)["user_code"];

describe("the page for a device's code (RFC 8628 §3.3)", () => {
  test("is shown after a login", async () => {
    const browser = gatepost.openBrowser();
    const page = await browser.get(VERIFY);
    assertLoginPage(page);
    assert.match(page.text, /to connect a device/);
    const wrong = await browser.submit(page, { username: user.username, password: "wrong one" });
    assertLoginPage(wrong, 403);
    const code = await passLogin(browser, wrong, user);
    assertCodePage(code);
    assert.match(code.text, new RegExp(user.username));
    assert.equal(codeIn(code), "");
  });

  test("fills in the code of verification_uri_complete, and asks to confirm it", async () => {
    const device = await newDevice(gatepost, app);
    const { search } = new URL(device.verification_uri_complete);
    const { browser, page } = await openVerify(gatepost, user, search);
    assert.equal(codeIn(page), device.user_code);
    assert.equal(await pollFor(gatepost, app, device), WAITING);
    const consent = await browser.submit(page);
    assertConsentPage(consent);
    await browser.submit(consent, {}, "allow");
    assert.equal(await pollFor(gatepost, app, device), "consumer orders");
  });

  test("accepts the code in any case, and ignores characters that no code has", async () => {
    const { browser, page } = await openVerify(gatepost, user);
    const { user_code: code } = await newDevice(gatepost, app);
    const bare = code.replace("-", "");
    for (const typed of [
      code, code.toLowerCase(), bare, ` ${bare.toLowerCase()} `, code.replace("-", " "),
      [...bare].join("."), code.replace("-", "–"), `${code}1`,
    ]) {
      const consent = await typeCode(browser, page, typed);
      assert.ok(consent.text.includes(code), typed);
    }
  });

  test("leads to consent with app, scopes, code and user, for trusted apps too", async () => {
    const { browser, page } = await openVerify(gatepost, user);
    for (let round = 0; round < 2; round++) { // an earlier consent is not enough
      const device = await newDevice(gatepost, app, { scope: "orders" });
      const consent = await typeCode(browser, page, device.user_code);
      for (const words of ["Living Room TV", "orders", device.user_code, user.username]) {
        assert.ok(consent.text.includes(words), words);
      }
      assert.ok(!consent.text.includes("go back to"));
      const done = await browser.submit(consent, {}, "allow");
      assert.equal(done.status, 200);
      assert.match(done.text, /Device connected/);
      assert.deepEqual(done.forms(), []);
      assert.equal(await pollFor(gatepost, app, device), "orders");
    }
  });

  test("neither uses nor makes a consent that the authorize page remembers", async () => {
    const plain = await gatepost.createApp({ scopes, grants });
    const device = await newDevice(gatepost, plain);
    await decide(gatepost, user, device);
    const browser = await gatepost.openLoggedIn(app, user);
    assertConsentPage(await gatepost.authorize(browser, plain));
    await browser.submit(await gatepost.authorize(browser, plain), {}, "allow");
    const { user_code } = await newDevice(gatepost, plain);
    await typeCode(browser, await browser.get(VERIFY), user_code);
  });

  test("says after Deny that the device is not connected", async () => {
    const device = await newDevice(gatepost, app);
    const page = await decide(gatepost, user, device, "deny");
    assert.equal(page.status, 200);
    assert.match(page.text, /Device not connected/);
    assert.equal(await pollFor(gatepost, app, device), "access_denied");
  });

  test("lets another user sign in, from the code page and from the consent page", async () => {
    const other = await gatepost.createUser({ scopes });
    const device = await newDevice(gatepost, app);
    const { search } = new URL(device.verification_uri_complete);
    const { browser, page } = await openVerify(gatepost, user, search);
    const login = await browser.submit(page, {}, "switch");
    assertLoginPage(login);
    assert.match(login.text, /You are signed out/);
    const consent = await browser.submit(await passLogin(browser, login, other));
    assert.ok(consent.text.includes(other.username));
    const again = await passLogin(browser, await browser.submit(consent, {}, "switch"), user);
    assert.equal(codeIn(again), device.user_code);
    assert.equal(await pollFor(gatepost, app, device), WAITING);
  });

  test("says that a code is wrong, and keeps the text that was typed", async () => {
    const { browser, page } = await openVerify(gatepost, user);
    for (const [typed, shown] of [["bcdfghjk", "BCDF-GHJK"], ["12<", "12<"], ["", ""]] as const) {
      const again = await browser.submit(page, { user_code: typed });
      assertCodePage(again, 400);
      assert.equal(codeIn(again), shown);
      assert.match(again.text, /No device is waiting with this code/);
    }
  });

  test("accepts a code once, and then says that it has been used", async () => {
    const device = await newDevice(gatepost, app);
    const { browser, page } = await openVerify(gatepost, user);
    const consent = await typeCode(browser, page, device.user_code);
    await browser.submit(consent, {}, "allow");
    const again = await browser.submit(consent, {}, "allow");
    assertCodePage(again, 409);
    assert.match(again.text, /has been used/);
    const denied = await browser.submit(consent, {}, "deny");
    assertCodePage(denied, 409);
    assert.equal(await pollFor(gatepost, app, device), "consumer orders");
    assertCodePage(await browser.submit(page, { user_code: device.user_code }), 409);
  });

  test("refuses an account that has none of the scopes, and the device keeps waiting", async () => {
    const poor = await gatepost.createUser({ scopes: ["stock"] });
    const device = await newDevice(gatepost, app, { scope: "orders" });
    const { browser, page } = await openVerify(gatepost, poor);
    const again = await browser.submit(page, { user_code: device.user_code });
    assertCodePage(again, 400);
    assert.match(again.text, /does not have scope orders/);
    assert.equal(await pollFor(gatepost, app, device), WAITING);
  });

  test("refuses scopes that do not fit into a token, and the device keeps waiting", async () => {
    const many = Array.from({ length: 100 }, (_, at) => `scope-${at}-`.padEnd(64, "x"));
    const wide = await gatepost.createApp({ scopes: many, grants });
    const device = await newDevice(gatepost, wide);
    const rich = await gatepost.createUser({ scopes: many });
    const { browser, page } = await openVerify(gatepost, rich);
    const again = await browser.submit(page, { user_code: device.user_code });
    assertCodePage(again, 400);
    assert.match(again.text, /are too many for one token/);
    assert.equal(await pollFor(gatepost, wide, device), WAITING);
  });

  test("refuses the code of a disabled app", async () => {
    const gone = await gatepost.createApp({ scopes, grants });
    const device = await newDevice(gatepost, gone);
    await gatepost.change(gone, { status: "disabled" });
    const { browser, page } = await openVerify(gatepost, user);
    assertCodePage(await browser.submit(page, { user_code: device.user_code }), 400);
  });

  test("refuses the code of an app that may no longer use the device grant", async () => {
    const lost = await gatepost.createApp({ scopes, grants });
    const device = await newDevice(gatepost, lost);
    await gatepost.change(lost, { grants: ["authorization_code"] });
    const { browser, page } = await openVerify(gatepost, user);
    const response = await browser.submit(page, { user_code: device.user_code });
    assertCodePage(response, 400);
    assert.match(response.text, /may not use grant/);
  });

  test("does not decide anything on HEAD", async () => {
    const device = await newDevice(gatepost, app);
    const { search } = new URL(device.verification_uri_complete);
    const { browser } = await openVerify(gatepost, user);
    const head = await browser.send("HEAD", VERIFY + search);
    assert.deepEqual([head.status, head.text], [200, ""]);
    assert.equal(await pollFor(gatepost, app, device), WAITING);
  });
});

describe("only the user's own click connects a device", () => {
  /** A consent page for a new device. */
  async function openConsent(as = user) {
    const device = await newDevice(gatepost, app);
    const { browser, page } = await openVerify(gatepost, as);
    return { device, browser, page, consent: await typeCode(browser, page, device.user_code) };
  }

  const forgeries: [
    what: string,
    fields: (own: ClientResponse, start: ClientResponse) => Promise<Fields>,
  ][] = [
    ["without its token", async () => ({ decision: "allow" })],
    ["that signs out, without its token", async () => ({ decision: "switch" })],
    ["with an empty token", async () => ({ csrf: "", decision: "allow" })],
    ["with the token of the page for the code", async (_, start) => ({
      ...fieldsOf(start), user_code: "", decision: "allow",
    })],
    ["with the token of another browser", async () => ({
      ...fieldsOf((await openConsent()).consent), decision: "allow",
    })],
    ["with the token for another device", async (own) => ({
      ...fieldsOf(own), user_code: (await newDevice(gatepost, app)).user_code, decision: "allow",
    })],
    ["with an unknown decision", async (own) => ({ ...fieldsOf(own), decision: "maybe" })],
  ];
  for (const [what, fields] of forgeries) {
    test(`not a form ${what}`, async () => {
      const { device, browser, page, consent } = await openConsent();
      const response = await browser.postForm(
        actionOf(consent), await fields(consent, page), OWN_PAGE,
      );
      assert.ok(!response.text.includes("Device connected"), response.text);
      assert.equal(await pollFor(gatepost, app, device), WAITING);
      assertCodePage(await browser.get(VERIFY)); // still signed in
    });
  }

  for (const headers of [
    { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
    { "sec-fetch-site": "same-site", origin: "null" },
    { origin: "https://evil.example" },
    { ...OWN_PAGE, "sec-fetch-dest": "empty" },
    { ...OWN_PAGE, "sec-fetch-dest": "iframe" },
  ]) {
    test(`not a form sent with ${JSON.stringify(headers)}`, async () => {
      const { device, browser, consent } = await openConsent();
      const fields = { ...fieldsOf(consent), decision: "allow" };
      const response = await browser.postForm(actionOf(consent), fields, headers);
      assert.equal(response.status, 403);
      assert.equal(await pollFor(gatepost, app, device), WAITING);
    });
  }

  test("and no page may frame its pages, read them or send their forms elsewhere", async () => {
    const { browser, page, consent } = await openConsent();
    const login = await gatepost.openBrowser().get(VERIFY);
    const frame = await browser.get(VERIFY, { "sec-fetch-dest": "iframe" });
    assert.equal(frame.status, 403);
    for (const each of [login, page, consent]) {
      const policy = each.headers.get("content-security-policy") ?? "";
      assert.match(policy, /default-src 'none'.*frame-ancestors 'none'/);
      const [, action = ""] = /form-action ([^;]*)/.exec(policy) ?? [];
      assert.equal(action, `'self' ${new URL(gatepost.issuer).origin}`);
      assert.equal(each.headers.get("x-frame-options"), "DENY");
      assert.equal(each.headers.get("cache-control"), "no-store");
      assert.equal(each.headers.get("access-control-allow-origin"), null);
    }
  });

  test("not a session that has ended in the meantime", async () => {
    const own = await gatepost.createUser({ scopes });
    const { device, browser, page, consent } = await openConsent(own);
    await gatepost.change(own, { password: "another password" });
    assertLoginPage(await browser.submit(consent, {}, "allow"), 400);
    assertLoginPage(await browser.submit(page, { user_code: device.user_code }), 400);
    assert.equal(await pollFor(gatepost, app, device), WAITING);
  });

  test("not a consent to scopes that were not on the page", async () => {
    const own = await gatepost.createUser({ scopes: ["orders"] });
    const { device, browser, consent } = await openConsent(own);
    await gatepost.change(own, { scopes });
    assertCodePage(await browser.submit(consent, {}, "allow"), 400);
    assert.equal(await pollFor(gatepost, app, device), WAITING);
  });
});

describe("wrong codes", () => {
  test("block a user after five, in any browser, and then right codes are 429 too", async () => {
    const own = await gatepost.createUser({ scopes });
    const device = await newDevice(gatepost, app);
    for (let count = 0; count < 5; count++) {
      const { browser, page } = await openVerify(gatepost, own);
      assertCodePage(await browser.submit(page, { user_code: "BCDF-GHJK" }), 400);
    }
    const { browser, page } = await openVerify(gatepost, own);
    const refused = await browser.submit(page, { user_code: device.user_code });
    assertCodePage(refused, 429);
    assert.ok(Number(refused.headers.get("retry-after")) > 800);
    assert.equal((await decide(gatepost, user, device)).status, 200);
  });

  test("block a user after five when they come at once", async () => {
    const own = await gatepost.createUser({ scopes });
    const { browser, page } = await openVerify(gatepost, own);
    const responses = await Promise.all(Array.from({ length: 20 }, () =>
      browser.submit(page, { user_code: "BCDF-GHJK" })
    ));
    assert.equal(responses.filter(({ status }) => status === 400).length, 5);
    assert.equal(responses.filter(({ status }) => status === 429).length, 15);
  });

  test("block a user after five at the consent step, too", async () => {
    const own = await gatepost.createUser({ scopes });
    const { browser } = await openVerify(gatepost, own);
    const statuses: number[] = [];
    for (const letter of "BCDFGHJK") {
      const path = `${VERIFY}?user_code=BCDF-GHJ${letter}`;
      const response = await browser.postForm(path, { csrf: "x", decision: "allow" }, OWN_PAGE);
      statuses.push(response.status);
    }
    assert.deepEqual(statuses, [400, 400, 400, 400, 400, 429, 429, 429]);
  });

  // Before the tests that type so many codes that not all are recorded.
  test("are in the audit, and right codes are not counted", async () => {
    const own = await gatepost.createUser({ scopes });
    const { browser, page } = await openVerify(gatepost, own);
    const { user_code } = await newDevice(gatepost, app);
    for (let count = 0; count < 8; count++) await typeCode(browser, page, user_code);
    await browser.submit(page, { user_code: "BCDF-GHJK" });
    const path = `/backend/audit?action=user.code_failed&actor=${own.id}`;
    await until(async () => {
      const { items } = readObject(await gatepost.api.get(path, bearer(gatepost.adminToken)));
      return Array.isArray(items) && items.length > 0;
    });
  });

  test("block an address (of IPv6 its /64) after fifty, whoever the users are", async () => {
    const { user_code: right } = await newDevice(gatepost, app);
    const wrong = Array.from({ length: 5 }, () => "BCDF-GHJK");
    for (let at = 0; at < 11; at++) {
      const { browser, page } = await openVerify(gatepost, await gatepost.createUser({ scopes }));
      for (const code of at === 0 ? [right, ...wrong] : wrong) {
        const fields = { ...fieldsOf(page), user_code: code };
        const from = { ...OWN_PAGE, "x-forwarded-for": `2001:db8:0:fade::${at}` };
        const response = await browser.postForm(actionOf(page), fields, from);
        assert.equal(response.status, code === right ? 200 : at < 10 ? 400 : 429);
      }
    }
  });

  test("do not block another user, however many users type them", async (t) => {
    const anonymous = gatepost.openBrowser();
    await anonymous.get(VERIFY);
    const [cookie] = anonymous.cookies();
    const database = openDatabaseAt(join(gatepost.server.folder, "gatepost.db"));
    t.after(() => database.close());
    for (let users = 0; users < 101; users++) {
      const id = newSecret();
      const nowMs = Date.now();
      await database.write([
        insertSession(sha256(id), await addUser(database), nowMs, nowMs + 600_000),
      ]);
      const from = { "x-forwarded-for": newAddress(), cookie: `${cookie?.name}=${id}` };
      const page = await gatepost.api.get(VERIFY, from);
      assertCodePage(page);
      const fields = { ...fieldsOf(page), user_code: "BCDF-GHJK" };
      for (let count = 0; count < 5; count++) {
        const response = await gatepost.api.postForm(VERIFY, fields, { ...OWN_PAGE, ...from });
        assert.equal(response.status, 400, response.text);
      }
    }
    const { browser, page } = await openVerify(gatepost, await gatepost.createUser({ scopes }));
    await typeCode(browser, page, (await newDevice(gatepost, app)).user_code);
  });
});

test("the audit has who allowed and who denied a device, and from which address", async () => {
  const own = await gatepost.createUser({ scopes });
  await decide(gatepost, own, await newDevice(gatepost, app));
  await decide(gatepost, own, await newDevice(gatepost, app), "deny");
  const response = await gatepost.api.get(`/backend/audit?actor=${own.id}`,
    bearer(gatepost.adminToken));
  const { items } = readObject(response);
  const entries: readonly Fields[] = Array.isArray(items) ? items : [];
  const decisions = entries.filter((entry) => entry["app"] === app.id);
  assert.deepEqual(decisions.map(({ action }) => action), ["grant.deny", "grant.allow"]);
  assert.ok(decisions.every(({ address }) => address), "each has an address");
});

test("the log has no user code and no device code", async () => {
  const device = await newDevice(gatepost, app);
  const { search } = new URL(device.verification_uri_complete);
  const { browser, page } = await openVerify(gatepost, user, search);
  await browser.submit(await browser.submit(page), {}, "allow");
  const text = gatepost.server.lines.join("\n") + gatepost.server.stderr();
  assert.ok(!text.includes(device.user_code) && !text.includes(device.device_code));
});
