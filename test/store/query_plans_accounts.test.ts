import assert from "node:assert/strict";
import { test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { APP_LIST } from "../../src/store/apps.ts";
import { listPart } from "../../src/store/list.ts";
import { AUDIT_LIST } from "../../src/store/audit.ts";
import { listActingApps, withdrawConsent } from "../../src/store/consents.ts";
import { endExcessGrants, endOldest } from "../../src/store/grant_limit.ts";
import { revokeGrantsWithScopes, revokeOthersOf } from "../../src/store/grant_end.ts";
import { listGrants, listLiveGrants } from "../../src/store/grants.ts";
import { createAttempt } from "../../src/store/idempotency.ts";
import { PRINCIPALS } from "../../src/store/issuers.ts";
import {
  admitLogin,
  countLoginFailures,
  deleteLoginFailures,
} from "../../src/store/login_failures.ts";
import {
  findPersonalCaller,
  insertPersonalToken,
  isCallerActive,
} from "../../src/store/personal_tokens.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import { endSessionsOf, hasSession, listSessions } from "../../src/store/sessions.ts";
import { hasActiveGrant } from "../../src/store/subscriptions.ts";
import { USER_LIST } from "../../src/store/users.ts";
import { createUses } from "../../src/store/uses.ts";
import {
  GRANT,
  listing,
  NOW_MS,
  of,
  openPlans,
  OWNER,
  PAGE,
  subsets,
  writing,
} from "../helpers/query_plans.ts";

const END = { reason: "x" };
const LOGIN = {
  account: new Uint8Array(32),
  place: "192.0.2.1",
  limits: [{ first: "192.0.2.1", last: "192.0.2.1", ofAccount: 10, ofAll: 50 }],
};

const { record, readPlan, findSorts, testPlans, testIndexes } = await openPlans();

testPlans([
  {
    name: "counting failed logins",
    run: (database) => countLoginFailures(database, LOGIN, NOW_MS, 40),
  },
  { name: "admitting a login", run: (database) => admitLogin(database, LOGIN, NOW_MS) },
  writing("deleting failed logins", () => [
    deleteLoginFailures(LOGIN.account, [LOGIN.place]),
    deleteLoginFailures(LOGIN.account),
  ]),
  ...subsets({ q: ["al"], status: ["active"] })
    .map((given) => listing("users", given, of(USER_LIST))),
  ...subsets({ q: ["al"], status: ["active"], owner: [OWNER] })
    .map((given) => listing("apps", given, of(APP_LIST))),
  ...subsets({
    actor: [OWNER],
    action: ["app.create", "app."],
    not: ["user.login", "user."],
    target: ["a1"],
    address: ["192.0.2.1"],
    since: [0],
    until: [NOW_MS],
  }).map((given) => listing("the audit", given, of(AUDIT_LIST))),
  {
    name: "listing and ending a user's sessions",
    sorts: true, // a thousand at most
    async run(database) {
      await listSessions(database, OWNER, NOW_MS);
      await hasSession(database, OWNER, NOW_MS);
      const ways = [{ id: "b1" }, { spared: "b2" }, {}];
      await database.write(ways.flatMap((which) => endSessionsOf(OWNER, 0, which)));
    },
  },
  {
    name: "looking whether a grant is valid",
    run: (database) => hasActiveGrant(database, GRANT),
  },
  {
    name: "looking for revocations that are not in memory",
    async run(database) {
      await database.write([revocation("u1", NOW_MS, NOW_MS + 1), revocation("u2", 1, NOW_MS + 1)]);
      const revocations = await loadRevocations(database, () => NOW_MS, 1);
      await revocations.has({ jti: "j", grantId: GRANT, sub: "u3", clientId: "a1" });
      await revocations.refresh();
    },
  },
  {
    name: "listing the apps that act for a user, and withdrawing a consent",
    sorts: true, // some hundred at most
    async run(database) {
      await listActingApps(database, OWNER, NOW_MS);
      await listActingApps(database, OWNER, NOW_MS, "a1");
      await database.write(withdrawConsent(OWNER, "a1", END, NOW_MS, 1));
    },
  },
  {
    name: "looking for grants over the limit",
    run: (database) => endExcessGrants(database, OWNER, "a1", NOW_MS),
  },
  writing("ending grants over the limit", () => endOldest(OWNER, "a1", NOW_MS)),
  {
    name: "making a personal token, using it and listing it",
    async run(database) {
      const id = newId("g", NOW_MS);
      const hash = new Uint8Array(32);
      const token = { app: "personal", user: OWNER, type: "personal", name: "n", scopes: [] };
      const times = { refreshUntilMs: 0, accessUntilMs: NOW_MS + 9, revokedAtMs: null };
      const grant = { ...token, ...times, id, lastUsedAtMs: null, status: "active" } as const;
      const caller = {
        sub: OWNER, kind: "user", clientId: "login", scopes: [], grantId: GRANT, jti: "j",
        expiresAtMs: NOW_MS,
      } as const;
      const isIn = isCallerActive(caller);
      await database.write([insertPersonalToken(grant, OWNER, hash, isIn, NOW_MS)]);
      assert.ok(await findPersonalCaller(database, { grantId: id, hash }, NOW_MS));
      assert.equal((await listLiveGrants(database, OWNER, NOW_MS)).length, 1);
      const uses = createUses(database, () => NOW_MS);
      uses.note({ caller, notedIn: 0 });
      await uses.flush();
    },
  },
  {
    name: "a request with an Idempotency-Key",
    async run(database) {
      const attempt = createAttempt(database, new Uint8Array(32), new Uint8Array(32), "k1");
      await attempt.begin(NOW_MS);
      await attempt.extend(NOW_MS);
      await database.write([attempt.keep("{}")]);
      await attempt.find();
    },
  },
]);

testIndexes([
  ["audit_by_actor", listing("the audit", { actor: OWNER }, of(AUDIT_LIST))],
  ["audit_by_target", listing("the audit", { target: "a1" }, of(AUDIT_LIST))],
  ["audit_by_address", listing("the audit", { address: "192.0.2.1" }, of(AUDIT_LIST))],
  ["audit_by_action", listing("the audit", { action: "app.create" }, of(AUDIT_LIST))],
  ["apps_by_owner", listing("apps", { owner: OWNER }, of(APP_LIST))],
  ["principals_by_issuer", listing("principals", { issuer: "i1" }, of(PRINCIPALS))],
  ["sqlite_autoindex_users_2", listing("users", { q: "al" }, of(USER_LIST))],
  ["apps_by_name", listing("apps", { q: "al" }, of(APP_LIST))],
]);

test("the grants of a user are found by index, and without sorting", async () => {
  const { database, statements } = record();
  await listGrants(database, { user: OWNER, ...PAGE }, NOW_MS);
  await listGrants(database, { user: OWNER, app: "a1", ...PAGE }, NOW_MS);
  await listLiveGrants(database, OWNER, NOW_MS);
  await endExcessGrants(database, OWNER, "a1", NOW_MS);
  await database.write(revokeOthersOf(OWNER, GRANT, NOW_MS));
  await database.write(await revokeGrantsWithScopes(database, { user: OWNER }, ["x"], NOW_MS));
  for (const sql of statements) {
    const ways = readPlan(sql).filter((step) => /^(SEARCH|SCAN) grants /.test(step));
    const others = ways.filter((way) => !/ (ended_)?grants_of_user \(user=\?/.test(way));
    assert.deepEqual([others, findSorts(sql)], [[], []], sql);
  }
});

test("listing the audit until a time compares ids with that time alone", async () => {
  const { database, statements } = record();
  await listPart(database, AUDIT_LIST, { actor: "u1", until: NOW_MS, ...PAGE });
  for (const sql of statements) assert.equal(sql.match(/\bid < /g)?.length, 1, sql);
});
