import assert from "node:assert/strict";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, test } from "node:test";
import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { APP_LIST } from "../../src/store/apps.ts";
import { type Filter, type Given, type List, listPart } from "../../src/store/list.ts";
import { AUDIT_LIST } from "../../src/store/audit.ts";
import { listActingApps, withdrawConsent } from "../../src/store/consents.ts";
import type { Database } from "../../src/database/database.ts";
import type { Sql } from "../../src/database/sql.ts";
import {
  claimsOf,
  findNextDue,
  hasDelivery,
  listDueQueues,
  HEALTHS,
} from "../../src/store/deliveries.ts";
import { AT_MOST } from "../../src/store/batch.ts";
import {
  findDelivery,
  listAttempts,
  listDeliveries,
  listLatestAttempts,
} from "../../src/store/delivery_lists.ts";
import {
  announceFailedDelivery,
  findEvent,
  findEventByKey,
  insertEvent,
  EVENT_LIST,
} from "../../src/store/events.ts";
import {
  deliveryId,
  fanOut,
  findFanOutPart,
  listPendingEvents,
} from "../../src/store/fan_out.ts";
import { createFigureCounter, dropFigures, listFigures } from "../../src/store/figures.ts";
import { endExcessGrants, endOldest } from "../../src/store/grant_limit.ts";
import { revokeGrantsWithScopes, revokeOthersOf } from "../../src/store/grant_end.ts";
import { insertGrant, listGrants, listLiveGrants } from "../../src/store/grants.ts";
import { createAttempt } from "../../src/store/idempotency.ts";
import { PRINCIPALS } from "../../src/store/issuers.ts";
import {
  admitLogin,
  countLoginFailures,
  deleteLoginFailures,
} from "../../src/store/login_failures.ts";
import { listMuted, muteProblem, unmuteProblem } from "../../src/store/muted_problems.ts";
import {
  findPersonalCaller,
  insertPersonalToken,
  isCallerActive,
} from "../../src/store/personal_tokens.ts";
import { purge } from "../../src/store/purge.ts";
import { loadRevocations, revocation } from "../../src/store/revocations.ts";
import {
  continueResend,
  continueResends,
  countResend,
  insertResend,
  insertTestDelivery,
  newResend,
  RESEND_LIST,
  resendDeliveries,
  stopResend,
} from "../../src/store/resends.ts";
import { endSessionsOf, hasSession, listSessions } from "../../src/store/sessions.ts";
import { openSqliteDatabase } from "../../src/database/sqlite.ts";
import {
  clearEndedSubscriptions,
  clearSubscription,
  deleteSubscription,
  disableAfterFailure,
  disableSubscription,
  endSubscriptions,
} from "../../src/store/subscription_end.ts";
import {
  findSubscription,
  hasActiveGrant,
  insertSubscription,
  listFailing,
  SUBSCRIPTION_LIST,
  replaceSubscriptionSecret,
  updateSubscription,
  wakePaused,
} from "../../src/store/subscriptions.ts";
import { USER_LIST } from "../../src/store/users.ts";
import { createUses } from "../../src/store/uses.ts";
import { addUser, sampleGrant } from "../helpers/database.ts";
import { createDataFolder } from "../helpers/process.ts";

const NOW_MS = 1_900_000_000_000;
const PAGE = { limit: 50 };
const OWNER = "u00000000";
const USER = newId("u", NOW_MS);
const CLAIM = "c1";
const END = { reason: "x" };

/**
 * Partial indexes, and a table, that hold nothing but work that is to be done now; scanning one
 * is no error.
 */
const WORK_LISTS = ["subscriptions_to_clear", "deliveries_claimed", "resends_running"];
const WORK_TABLE = "subscription_endings";

let folder = "";
let stored: Database;
let plans: DatabaseSync;

before(async () => {
  folder = await createDataFolder();
  const path = join(folder, "gatepost.db");
  stored = openSqliteDatabase(path);
  plans = new DatabaseSync(path);
  const scopes = ["consumer"];
  await addUser(stored, { id: OWNER, scopes, createdAtMs: NOW_MS });
  await insertGrant(stored, sampleGrant("login", OWNER, { id: GRANT, scopes }));
});

after(async () => {
  plans.close();
  await stored.close();
  await rm(folder, { recursive: true });
});

/** Passes everything on and keeps the text of every statement. */
function record(): { database: Database; statements: Set<string> } {
  const statements = new Set<string>();
  return {
    statements,
    database: {
      query: (statement) => {
        statements.add(statement.sql);
        return stored.query(statement);
      },
      write: (batch) => {
        for (const { sql } of batch) statements.add(sql);
        return stored.write(batch);
      },
      close: () => Promise.resolve(),
    },
  };
}

function readPlan(sql: string): string[] {
  return plans.prepare(`EXPLAIN QUERY PLAN ${sql}`).all().map(({ detail }) => String(detail));
}

/** The steps of a statement's plan that scan a whole table or index. */
function findScans(sql: string): string[] {
  const steps = readPlan(sql);
  const own = steps.flatMap((step) => /^(?:CO-ROUTINE|MATERIALIZE) (\S+)/.exec(step)?.[1] ?? []);
  return steps.filter((step) => {
    const [, table = "", rest = ""] = /^SCAN (\S+)(.*)$/.exec(step) ?? [];
    // There is one row of account changes, and a few cronjobs.
    return !["", "CONSTANT", "account_changes", "cronjobs", WORK_TABLE, ...own].includes(table) &&
      !rest.includes("VIRTUAL TABLE") && !WORK_LISTS.some((index) => rest.endsWith(` ${index}`));
  });
}

/** The steps that sort: a list with one reads all that matches before it returns a page. */
function findSorts(sql: string): string[] {
  return readPlan(sql).filter((step) => step.includes("TEMP B-TREE"));
}

const LOGIN = {
  account: new Uint8Array(32),
  place: "192.0.2.1",
  limits: [{ first: "192.0.2.1", last: "192.0.2.1", ofAccount: 10, ofAll: 50 }],
};

interface Case {
  readonly name: string;
  /** It may sort, since it reads a bounded number of rows. */
  readonly sorts?: boolean;
  /** The only index by which its statements may look for subscriptions. */
  readonly by?: string;
  run(database: Database): Promise<unknown>;
}

const GRANT = newId("g", NOW_MS);
const SUBSCRIPTION = {
  id: newId("s", NOW_MS),
  principal: OWNER,
  app: "login",
  event: "order.created",
  endpoint: "https://subscriber.example/",
  secret: "whsec_",
  createdAtMs: NOW_MS,
  grant: { id: GRANT, scopes: ["consumer"] },
};
const EVENT = {
  id: newId("e", NOW_MS),
  name: "order.created",
  json: "{}",
  subject: undefined,
  createdAtMs: NOW_MS,
};
const DELIVERY = deliveryId(EVENT.id, 1);
const PENDING = {
  id: EVENT.id,
  name: EVENT.name,
  lastSubscription: 1,
  fannedOut: 0,
};
const FAILURE = { id: DELIVERY, subscription: 1, attempt: 1 };
const ATTEMPT = {
  ...FAILURE,
  endpoint: SUBSCRIPTION.endpoint,
  startedAtMs: NOW_MS,
  durationMs: 1,
  meanMs: 1,
  outcome: { kind: "response", status: 500 },
  snippet: undefined,
  next: { status: "failed", gone: false },
} as const;

function writing(name: string, statements: (database: Database) => readonly Sql[]): Case {
  return { name, run: (database) => database.write(statements(database)) };
}

/** A case that lists by the given filters, which its name shows. */
function listing<const Given extends object>(
  what: string,
  given: Given,
  list: (database: Database, given: Given & typeof PAGE) => Promise<unknown>,
): Case {
  return {
    name: `listing ${what} by ${JSON.stringify(given)}`,
    run: (database) => list(database, { ...given, ...PAGE }),
  };
}

const of = <F extends Record<string, Filter>, Row, Item extends { readonly id: string }>(
  list: List<F, Row, Item>,
) =>
  (database: Database, given: Given<F>) => listPart(database, list, given);

/** None of the members, each value alone, and each two together. */
function subsets<const M extends Record<string, readonly unknown[]>>(members: M) {
  type One = { readonly [Key in keyof M]?: M[Key][number] };
  const alone = Object.entries(members)
    .flatMap(([name, values]) => values.map((value) => ({ [name]: value })));
  const pairs = alone.flatMap((one, at) => alone.slice(at + 1).map((two) => ({ ...one, ...two })));
  return [{}, ...alone, ...pairs] as One[];
}

const SELECTIONS = [
  { status: "failed" },
  { status: "delivered", subscription: SUBSCRIPTION.id, since: NOW_MS - 1, until: NOW_MS + 1 },
  { status: "cancelled", name: EVENT.name, endpoint: "a.example", answer: "500", attempt: 1 },
  { status: "pending", subscription: SUBSCRIPTION.id },
] as const;

// In an order in which each finds rows to work on.
const CASES: readonly Case[] = [
  writing("storing a subscription", () => [
    insertSubscription(SUBSCRIPTION, createSeal(undefined)),
  ]),
  writing("storing an event", () => [insertEvent(EVENT)]),
  writing("storing an event with a key", () => [
    insertEvent({ ...EVENT, id: newId("e", NOW_MS), key: "7" }),
  ]),
  {
    name: "finding an event by its key",
    run: (database) => findEventByKey(database, EVENT.name, "7"),
  },
  {
    name: "finding events to fan out",
    sorts: true, // the oldest and the newest together
    run: (database) => listPendingEvents(database, { oldest: 224, newest: 32 }),
  },
  ...[null, OWNER].flatMap((subject) => ["[]", '["a","b"]'].flatMap((needed): Case[] => {
    const event = { ...PENDING, subject, needed };
    const what = `an event for ${subject ?? "everybody"} that needs ${needed}`;
    const by = subject === null ? {}
      : { by: "subscriptions_by_principal (principal=? AND event=?)" };
    return [
      {
        name: `finding the next fan-out part of ${what}`,
        ...by,
        run: (database) =>
          findFanOutPart(database, event, { limit: 500, idleLimit: 64, nowMs: NOW_MS }),
      },
      {
        name: `fanning out ${what}`,
        ...by,
        run: (database) =>
          fanOut(database, [{ event, end: 9, claimed: [1] }], CLAIM, NOW_MS + 1, NOW_MS),
      },
    ];
  })),
  ...HEALTHS.map((health): Case => ({
    name: `finding queues that are due: ${health}`,
    run: (database) => {
      const except = { subscriptions: [7], principals: [OWNER] };
      return listDueQueues(database, health, except, 10, NOW_MS);
    },
  })),
  {
    name: "finding the next due time",
    sorts: true, // one of each health at most
    run: (database) => findNextDue(database, NOW_MS),
  },
  {
    name: "claiming deliveries",
    sorts: true, // by id, of one claim
    run: (database) =>
      claimsOf(database, CLAIM).claim([{ subscription: 1, count: 8 }], NOW_MS + 50, NOW_MS),
  },
  {
    name: "reading claimed deliveries",
    run: (database) => claimsOf(database, CLAIM).listSendable([DELIVERY], NOW_MS + 10),
  },
  { name: "looking whether a delivery exists", run: (database) => hasDelivery(database, DELIVERY) },
  { name: "listing claimed deliveries", run: (database) => claimsOf(database, CLAIM).list() },
  {
    name: "counting failed logins",
    run: (database) => countLoginFailures(database, LOGIN, NOW_MS, 40),
  },
  { name: "admitting a login", run: (database) => admitLogin(database, LOGIN, NOW_MS) },
  writing("deleting failed logins", () => [
    deleteLoginFailures(LOGIN.account, [LOGIN.place]),
    deleteLoginFailures(LOGIN.account),
  ]),
  writing("releasing deliveries", (database) =>
    claimsOf(database, CLAIM).release([{ id: "d0", subscription: 1 }], NOW_MS)),
  writing("announcing a failed delivery", (database) =>
    [announceFailedDelivery(claimsOf(database, CLAIM).isClaimed(FAILURE), NOW_MS)]),
  ...[{ goneEndpoint: SUBSCRIPTION.endpoint }, { failingSinceMs: NOW_MS - 1 }].map((rule) =>
    writing(`disabling after a failure: ${Object.keys(rule).join()}`, (database) => {
      const isClaimed = claimsOf(database, "").isClaimed(FAILURE);
      const { before, after } = disableAfterFailure(1, isClaimed, rule, NOW_MS);
      return [...before, ...after];
    })
  ),
  writing("recording successes", (database) =>
    claimsOf(database, "").recordDelivered([ATTEMPT], NOW_MS)),
  writing("recording a failure", (database) =>
    claimsOf(database, CLAIM).recordFailure(ATTEMPT, NOW_MS)),
  ...SELECTIONS.map((selection): Case => ({
    name: `resending in bulk by ${Object.keys(selection)}`,
    async run(database) {
      const resend = newResend(newId("w", NOW_MS), OWNER, selection);
      await countResend(database, resend);
      await database.write([insertResend(resend)]);
      await continueResend(database, resend, NOW_MS);
      await continueResends(database, NOW_MS);
      await database.write([stopResend(resend.id, NOW_MS)]);
    },
  })),
  ...([{}, { state: "done" }, { subscription: "s1", actor: OWNER }] as const).map((given) => ({
    name: `listing resends by ${Object.keys(given)}`,
    run: (database: Database) => listPart(database, RESEND_LIST, { ...given, ...PAGE }),
  })),
  writing("resending one delivery", () => resendDeliveries([DELIVERY], NOW_MS)),
  writing("sending a test delivery", () => {
    const event = newId("e", NOW_MS);
    const delivery = deliveryId(event, 1);
    const test = { subscription: SUBSCRIPTION.id, event, delivery, json: "1" };
    return insertTestDelivery(test, NOW_MS);
  }),
  ...subsets({
    status: ["pending", "failed"],
    subscription: [SUBSCRIPTION.id],
    event: [EVENT.id],
    name: [EVENT.name],
    endpoint: ["https://subscriber"],
    answer: ["500", "timeout"],
    attempt: [4],
    since: [NOW_MS - 1],
    until: [NOW_MS + 1],
  }).map((given) => listing("deliveries", given, listDeliveries)),
  ...subsets({
    name: [EVENT.name],
    status: ["pending", "distributed"],
    subject: [OWNER],
    request: ["r1"],
    source: ["POST /orders"],
    since: [NOW_MS - 1],
    until: [NOW_MS + 1],
  }).map((given) => listing("events", given, of(EVENT_LIST))),
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
  ...subsets({ q: ["https://a"], event: [EVENT.name], status: ["paused"] })
    .map((given) => listing("all subscriptions", given, of(SUBSCRIPTION_LIST))),
  ...subsets({ event: [EVENT.name], status: ["paused"], app: ["a1"] }).map((given): Case => ({
    ...listing("a principal's subscriptions", { ...given, owner: OWNER }, of(SUBSCRIPTION_LIST)),
    sorts: true, // a principal has a hundred at most
    by: "subscriptions_by_principal (principal=?)",
  })),
  {
    name: "waking subscriptions whose pause has ended",
    run: (database) => wakePaused(database, NOW_MS),
  },
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
  { name: "finding a delivery", run: (database) => findDelivery(database, DELIVERY) },
  { name: "listing attempts", run: (database) => listAttempts(database, DELIVERY) },
  { name: "finding an event", run: (database) => findEvent(database, EVENT.id) },
  ...[undefined, "a00000000"].flatMap((app): Case[] => [
    {
      name: `finding a principal's subscription, app: ${app}`,
      run: (database) =>
        findSubscription(database, SUBSCRIPTION.id, { owner: OWNER, app }),
    },
  ]),
  ...[{}, { owner: OWNER }, { owner: OWNER, app: "a00000000" }].map((given): Case => ({
    name: `listing the failing subscriptions of ${Object.values(given).join() || "everybody"}`,
    sorts: "owner" in given, // those of one principal
    run: (database) => listFailing(database, { ...given, ...PAGE }),
  })),
  {
    name: "counting and listing figures",
    async run(database) {
      const figures = createFigureCounter(database, () => NOW_MS);
      figures.add("deliveries", true);
      await figures.flush();
      assert.equal((await listFigures(database, "deliveries", "hour", 0, NOW_MS)).length, 1);
    },
  },
  {
    name: "deleting old figures",
    sorts: true, // what is deleted, in the order of its keys
    run: (database) => database.write(dropFigures(NOW_MS, AT_MOST)),
  },
  {
    name: "listing the latest attempts of a subscription",
    sorts: true, // some hundred
    run: (database) => listLatestAttempts(database, 1),
  },
  {
    name: "muting problems",
    async run(database) {
      await database.write([muteProblem("key", NOW_MS + 1), unmuteProblem("key")]);
      await listMuted(database, NOW_MS);
    },
  },
  {
    name: "finding a subscription of any principal",
    run: (database) => findSubscription(database, SUBSCRIPTION.id),
  },
  {
    name: "looking whether a grant is valid",
    run: (database) => hasActiveGrant(database, GRANT),
  },
  writing("changing a subscription", () => [
    updateSubscription(
      SUBSCRIPTION.id,
      { endpoint: undefined, status: "paused" },
      SUBSCRIPTION.grant,
    ),
    replaceSubscriptionSecret(SUBSCRIPTION.id, "whsec_", NOW_MS, createSeal(undefined)),
  ]),
  {
    ...writing("ending by app", () => endSubscriptions({ app: "a1" }, END, NOW_MS)),
    by: "subscriptions_by_app (app=?)",
  },
  ...[{ user: USER }, { user: USER, app: "a1" }].map((who) => ({
    ...writing(`ending by ${Object.keys(who)}`, () => endSubscriptions(who, END, NOW_MS)),
    by: "subscriptions_by_principal (principal=?)",
  })),
  {
    ...writing("ending by grant", () => endSubscriptions({ grant: "g1" }, END, NOW_MS)),
    by: "subscriptions_by_grant (grantId=?)",
  },
  writing("ending subscriptions with a scope", () =>
    endSubscriptions({ app: "a1" }, { ...END, scopes: ["a", "b"] }, NOW_MS)),
  writing("ending subscriptions of a deleted app", () =>
    endSubscriptions({ app: "a1" }, { ...END, deletes: true }, NOW_MS)),
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
  writing("disabling a subscription", () => disableSubscription(SUBSCRIPTION.id, "x", NOW_MS)),
  {
    name: "cancelling the remaining deliveries of a subscription",
    run: (database) => clearSubscription(database, SUBSCRIPTION.id, NOW_MS),
  },
  writing("deleting a subscription", () => deleteSubscription(SUBSCRIPTION.id, NOW_MS)),
  {
    name: "cancelling the remaining deliveries of all subscriptions",
    sorts: true, // those of one principal
    run: (database) =>
      clearEndedSubscriptions(database, () => NOW_MS, new AbortController().signal),
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
  {
    name: "the purge",
    sorts: true, // what is deleted, in the order of its keys
    run: (database) => {
      const retention = { eventsMs: 1, auditMs: 1 };
      return purge(database, retention, NOW_MS + 10_000_000, new AbortController().signal);
    },
  },
];

for (const { name, sorts = false, by, run } of CASES) {
  test(`${name} scans no whole table`, async () => {
    const { database, statements } = record();
    await run(database);
    assert.ok(statements.size > 0);
    const used = new Set<string>();
    for (const sql of statements) {
      assert.deepEqual(findScans(sql), [], sql);
      if (!sorts) assert.deepEqual(findSorts(sql), [], sql);
      // The search for subscribers to the end's own event does not count.
      for (const step of readPlan(sql).filter((each) => !each.startsWith("SEARCH o "))) {
        for (const way of /subscriptions_by_.*/.exec(step) ?? []) used.add(way);
      }
    }
    if (by !== undefined) assert.deepEqual([...used], [by]);
  });
}

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

for (const [index, { name, run }] of [
  ["audit_by_actor", listing("the audit", { actor: OWNER }, of(AUDIT_LIST))],
  ["audit_by_target", listing("the audit", { target: "a1" }, of(AUDIT_LIST))],
  ["audit_by_address", listing("the audit", { address: "192.0.2.1" }, of(AUDIT_LIST))],
  ["audit_by_action", listing("the audit", { action: "app.create" }, of(AUDIT_LIST))],
  ["events_by_request", listing("events", { request: "r1" }, of(EVENT_LIST))],
  ["events_by_name", listing("events", { name: EVENT.name }, of(EVENT_LIST))],
  ["events_by_status", listing("events", { status: "pending" }, of(EVENT_LIST))],
  ["deliveries_by_status", listing("deliveries", { status: "failed" }, listDeliveries)],
  ["deliveries_by_subscription",
    listing("deliveries", { subscription: SUBSCRIPTION.id }, listDeliveries)],
  ["apps_by_owner", listing("apps", { owner: OWNER }, of(APP_LIST))],
  ["subscriptions_by_principal",
    listing("subscriptions", { owner: OWNER }, of(SUBSCRIPTION_LIST))],
  ["principals_by_issuer", listing("principals", { issuer: "i1" }, of(PRINCIPALS))],
  ["sqlite_autoindex_users_2", listing("users", { q: "al" }, of(USER_LIST))],
  ["apps_by_name", listing("apps", { q: "al" }, of(APP_LIST))],
  ["subscriptions_by_endpoint",
    listing("subscriptions", { q: "https://a" }, of(SUBSCRIPTION_LIST))],
] as const) {
  test(`${name} uses ${index}, and needs no limit to the rows it looks at`, async () => {
    const { database, statements } = record();
    await run(database);
    const steps = [...statements].flatMap(readPlan);
    assert.ok(steps.some((step) => step.includes(` ${index} (`)), steps.join("; "));
    // A list without an index limits by OFFSET how many rows it looks at.
    assert.deepEqual([...statements].filter((sql) => sql.includes("OFFSET")), []);
  });
}

test("the purge leaves only pending rows", () => {
  for (const table of ["events", "deliveries", "attempts", "subscriptions"]) {
    const rows = plans.prepare(`SELECT * FROM ${table}`).all();
    assert.deepEqual(rows.filter(({ status }) => status !== "pending"), [], table);
  }
});

test("every foreign key has an index, so that no deletion scans a whole table", () => {
  const tables = plans.prepare("SELECT name FROM sqlite_schema WHERE type = 'table'").all();
  const references = tables.flatMap(({ name }) =>
    plans.prepare(`PRAGMA foreign_key_list(${name})`).all()
      .map(({ from }) => ({ table: String(name), column: String(from) }))
  );
  assert.ok(references.length >= 4);
  for (const { table, column } of references) {
    assert.deepEqual(findScans(`SELECT 1 FROM ${table} WHERE ${column} = ?1`), [], table);
  }
});

test("listing the audit until a time compares ids with that time alone", async () => {
  const { database, statements } = record();
  await listPart(database, AUDIT_LIST, { actor: "u1", until: NOW_MS, ...PAGE });
  for (const sql of statements) assert.equal(sql.match(/\bid < /g)?.length, 1, sql);
});

test("clearing a subscription finds claimed deliveries by their own index", async () => {
  const { database, statements } = record();
  await clearSubscription(database, SUBSCRIPTION.id, NOW_MS);
  const [update = ""] = [...statements].filter((sql) => sql.includes("claim IS NOT NULL"));
  const ways = readPlan(update).filter((step) => / deliveries /.test(step));
  assert.deepEqual(ways, ["SEARCH deliveries USING INDEX deliveries_claimed (claim>?)"]);
});

test("findScans() finds scans, and findSorts() finds sorts", () => {
  assert.equal(findScans("SELECT * FROM deliveries WHERE attempt = 3").length, 1);
  assert.equal(findScans("SELECT count(data) FROM events").length, 1);
  assert.equal(findSorts("SELECT * FROM events ORDER BY createdAtMs").length, 1);
});
