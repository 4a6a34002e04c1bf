import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { logIn } from "../../../src/api/authorization/authorize.ts";
import { formStep, type Visit } from "../../../src/api/authorization/authorize_pages.ts";
import { sendCode } from "../../../src/api/authorization/authorize_redirect.ts";
import { createBrowserSessions } from "../../../src/api/authorization/browser_session.ts";
import { parseForm } from "../../../src/base/form.ts";
import { sql, type Sql } from "../../../src/database/sql.ts";
import type { App } from "../../../src/oauth/app.ts";
import { insertApp, updateApp } from "../../../src/store/apps.ts";
import { withdrawConsent } from "../../../src/store/consents.ts";
import { loadRevocations } from "../../../src/store/revocations.ts";
import { findUserByName, usePassword } from "../../../src/store/users.ts";
import { configOf } from "../../helpers/config.ts";
import { addUser, openDatabase, sampleApp } from "../../helpers/database.ts";
import { sampleRequest } from "../../helpers/http_request.ts";
import { bodyOf, site } from "../../helpers/pages.ts";

const NOW_MS = Date.UTC(2040, 0, 1);

/** A visit of a user who is logged in, with the services of the pages. */
async function openVisit(t: TestContext) {
  const database = openDatabase(t);
  const now = () => NOW_MS;
  const revocations = await loadRevocations(database, now);
  const issuer = "http://127.0.0.1:8080";
  const pageKey = Buffer.alloc(32, 1);
  const sessions = createBrowserSessions({ database, revocations, issuer, pageKey, now });
  await addUser(database, { username: "marta" });
  const user = await findUserByName(database, "marta");
  assert.ok(user);
  const request = sampleRequest();
  const anonymous = await sessions.open(request);
  const [cookie = ""] = await sessions.logIn(anonymous, user.id, NOW_MS, request);
  const session = await sessions.open(sampleRequest({ headers: { cookie } }));
  const form = parseForm("");
  assert.ok(form);
  const app = sampleApp();
  const asked = { challenge: null, resource: null, requestedScopes: [], maxAgeMs: Infinity };
  const redirectUri = `${app.url}cb`;
  const visit: Visit = {
    request: { form, app, redirectUri, ...asked },
    session,
    address: "/authorization/authorize?client_id=a1",
  };
  return {
    database,
    visit,
    user,
    app,
    request,
    services: { database, issuer, config: configOf({}), now, sessions, site },
    actions: async () =>
      (await database.query<{ action: string }>(sql`SELECT action FROM audit ORDER BY id`))
        .map(({ action }) => action),
  };
}

describe("no code is sent, and no consent stored, once the session has ended:", () => {
  for (const isConsent of [true, false]) {
    for (const isRegistered of [true, false]) {
      const what = `${isConsent ? "with" : "without"} a consent, to an app that is ` +
        `${isRegistered ? "registered" : "known by its document"}`;
      test(what, async (t) => {
        const { database, visit, user, app, request, services, actions } = await openVisit(t);
        const insert = insertApp(app, undefined);
        if (isRegistered) await database.write([insert]);
        await services.sessions.logOut(visit.session, request);
        const registration = isRegistered ? [] : [insert];
        const at = { ...visit, request: { ...visit.request, registration } };
        await assert.rejects(
          sendCode(at, user, ["consumer"], { address: "", isConsent }, services),
          { status: 409, code: "conflict" },
        );
        assert.deepEqual(await database.query(sql`SELECT 1 FROM codes`), []);
        assert.deepEqual(await database.query(sql`SELECT 1 FROM consents`), []);
        assert.deepEqual(await actions(), ["user.login", "session.end"]);
      });
    }
  }
});

describe("a code without a consent page is neither sent nor stored", () => {
  const end = { reason: "grant withdrawn" };
  const changes: [what: string, (user: string, app: App) => Sql[], Partial<App>?][] = [
    ["once the consent is withdrawn", (user, { id }) => withdrawConsent(user, id, end, NOW_MS, 1)],
    ["once the app is no longer trusted",
      (_, app) => [updateApp(app, { ...app, trusted: false })], { trusted: true }],
    ["once the app has another origin",
      (_, app) => [updateApp(app, { ...app, url: "https://other.example/" })], { trusted: true }],
  ];
  for (const [what, change, more] of changes) {
    test(what, async (t) => {
      const { database, visit, user, services } = await openVisit(t);
      const app = sampleApp(more);
      await database.write([insertApp(app, undefined)]);
      const at = { ...visit, request: { ...visit.request, app } };
      const send = (isConsent: boolean) =>
        sendCode(at, user, ["consumer"], { address: "", isConsent }, services);
      if (!app.trusted) await send(true);
      const unseen = await send(false);
      assert.match(String(unseen.headers?.["Location"]), /[?&]code=/);
      const countRows = () => database.query(sql`SELECT count(*) FROM codes UNION ALL
        SELECT count(*) FROM audit WHERE action = 'grant.allow'`);
      const before = await countRows();
      await database.write(change(user.id, app));
      await assert.rejects(send(false), { status: 409, code: "conflict" });
      assert.deepEqual(await countRows(), before);
    });
  }
});

test("a code for an app whose document another process has just stored is a conflict",
  async (t) => {
    const { database, visit, user, request, services } = await openVisit(t);
    const metadataUrl = "https://app.example/client.json";
    const [app, other] = [sampleApp({ metadataUrl }), sampleApp({ metadataUrl })];
    await database.write([insertApp(other, undefined)]);
    const registration = [insertApp(app, undefined)];
    const at = { ...visit, request: { ...visit.request, app, registration } };
    const { address } = request;
    await assert.rejects(
      sendCode(at, user, ["consumer"], { address, isConsent: true }, services),
      { status: 409, code: "conflict" },
    );
  });

test("a one-time password used up before its login is stored counts as a wrong password",
  async (t) => {
    const { database, visit, request, services, actions } = await openVisit(t);
    const { sessions } = services;
    await addUser(database, { username: "otto", passwordUntilMs: NOW_MS + 1 });
    const user = await findUserByName(database, "otto");
    assert.ok(user);
    const uses = usePassword(user, NOW_MS);
    const csrf = sessions.formToken(visit.session, formStep(visit));
    const fields = new URLSearchParams({ csrf, username: "otto", password: "x" });
    const form = parseForm(fields.toString());
    assert.ok(form);
    const passwordLogin = {
      async check() {
        await database.write(uses);
        return { user, sinceMs: NOW_MS, uses };
      },
    };
    const response = await logIn(form, request, visit, { ...services, passwordLogin });
    assert.equal(response.status, 403);
    assert.match(bodyOf(response), /name="password"/);
    assert.deepEqual(await actions(), ["user.login"], "of marta alone");
  });
