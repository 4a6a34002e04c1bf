import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { exchangeRefreshToken } from "../../../src/api/authorization/exchange_refresh_token.ts";
import type { Exchange } from "../../../src/api/authorization/issue_grant.ts";
import { createTokenIssuer } from "../../../src/api/authorization/token_issuer.ts";
import { parseForm } from "../../../src/base/form.ts";
import { ID_LENGTH, idBound } from "../../../src/base/id.ts";
import { generatePrivateKey, importKey } from "../../../src/base/jwt.ts";
import { sha256 } from "../../../src/base/secret.ts";
import {
  type Database,
  OutcomeUnknownError,
  UnavailableError,
} from "../../../src/database/database.ts";
import type { Sql } from "../../../src/database/sql.ts";
import { CONSOLE_APP } from "../../../src/oauth/principal.ts";
import { createAccounts } from "../../../src/store/accounts.ts";
import { insertApp } from "../../../src/store/apps.ts";
import { findGrant, findRefreshToken, insertGrant } from "../../../src/store/grants.ts";
import { loadRevocations } from "../../../src/store/revocations.ts";
import { insertSession } from "../../../src/store/sessions.ts";
import { addUser, openDatabase, sampleApp, sampleGrant } from "../../helpers/database.ts";
import { sampleRequest } from "../../helpers/http_request.ts";
import { ringOf } from "../../helpers/jwt.ts";

const NOW_MS = Date.UTC(2026, 0, 1);
const TTL_MS = 3_600_000;
const REFRESH_TTL_MS = 24 * TTL_MS;
const key = importKey("k1", "ES256", await generatePrivateKey("ES256"));
const ofApp = sampleApp();

type Write = () => Promise<number[]>;
/** What happens to the write of one exchange. */
type Fate = (write: Write) => Promise<number[]>;

const unknown = () => Promise.reject(new OutcomeUnknownError("no answer"));
const stored: Fate = async (write) => {
  await write();
  return unknown();
};

/** A grant with its first refresh token, and a database with the fates of the next exchanges. */
async function openStage(t: TestContext, isOld = false, madeAtMs = NOW_MS, app = ofApp) {
  const real = openDatabase(t);
  const fates: Fate[] = [];
  let isDown = false;
  const database: Database = {
    ...real,
    query: <Row>(select: Sql) =>
      isDown ? Promise.reject(new UnavailableError("down")) : real.query<Row>(select),
    write(batch) {
      const isExchange = batch[0]?.sql.startsWith("UPDATE grants SET refresh");
      const fate = isExchange ? fates.shift() : undefined;
      return fate ? fate(() => real.write(batch)) : real.write(batch);
    },
  };
  await real.write([insertApp(ofApp, undefined)]);
  const user = await addUser(real);
  const issuer = "https://as.example";
  const tokens = createTokenIssuer({
    issuer,
    keys: ringOf(key),
    config: { accessTokenTtlMs: TTL_MS, refreshTokenTtlMs: REFRESH_TTL_MS },
    pageKey: Buffer.alloc(32, 1),
  });
  const id = idBound("g", madeAtMs).padEnd(ID_LENGTH, "0");
  const grant = sampleGrant(app.id, user, { id });
  const { issued, stored: first } = tokens.makeTokens(grant, app, madeAtMs);
  await insertGrant(real, { ...grant, ...first, refreshUntilMs: NOW_MS + REFRESH_TTL_MS });
  const revocations = await loadRevocations(database, () => NOW_MS);
  const services = {
    database,
    tokens: isOld
      ? { ...tokens, parseRefreshToken: (token: string) =>
        ({ ...parse(tokens, token), isGenuine: undefined }) }
      : tokens,
    accounts: createAccounts(database, revocations),
    issuer,
    revocations,
    passwordLogin: { check: () => Promise.reject() },
    now: () => NOW_MS + 1,
  } satisfies Parameters<Exchange>[1];
  return {
    database: real,
    user,
    first: issued.refresh_token ?? "",
    fates,
    setDown: (now: boolean) => void (isDown = now),
    async exchange(token: string): Promise<string> {
      const form = parseForm(`refresh_token=${token}`);
      assert.ok(form);
      const found = await exchangeRefreshToken({ app, form, request: sampleRequest() }, services);
      return found?.refresh_token ?? "";
    },
    stateOf: async (token: string) =>
      (await findRefreshToken(real, parse(tokens, token), NOW_MS + 1))?.state,
    isRevoked: async () => (await findGrant(real, grant.id))?.revokedAtMs !== null,
  };
}

function parse(tokens: ReturnType<typeof createTokenIssuer>, token: string) {
  const handle = tokens.parseRefreshToken(token);
  assert.ok(handle);
  return handle;
}

/** A fate that delays the write until `arrive()`; the exchange does not learn the outcome. */
function late() {
  const { promise, resolve } = Promise.withResolvers<void>();
  const { promise: done, resolve: end } = Promise.withResolvers<number[]>();
  const fate: Fate = (write) => {
    void promise.then(write).then(end);
    return unknown();
  };
  return {
    fate,
    arrive() {
      resolve();
      return done;
    },
  };
}

const isUnknown = { name: "OutcomeUnknownError" };
const isRefused = { code: "invalid_grant" };

test("a refresh is refused past the end of its chain, before its token expires", async (t) => {
  const { first, exchange } = await openStage(t, false, NOW_MS - 13 * REFRESH_TTL_MS);
  await assert.rejects(exchange(first), isRefused);
});

test("a refresh by the console is refused once its user has no session left", async (t) => {
  const console = { ...ofApp, id: CONSOLE_APP };
  const { database, user, first, exchange } = await openStage(t, false, NOW_MS, console);
  const session = (untilMs: number) => insertSession(sha256(`${untilMs}`), user, NOW_MS, untilMs);
  await database.write([session(NOW_MS + 1)]); // has just ended
  await assert.rejects(exchange(first), isRefused);
  await database.write([session(NOW_MS + 2)]);
  assert.ok(await exchange(first));
});

describe("a refresh whose outcome is unknown", () => {
  for (const isOld of [false, true]) {
    const which = isOld ? "a token of 0.1.0" : "a token";
    test(`succeeds where it was stored: ${which}`, async (t) => {
      const { first, fates, exchange, isRevoked } = await openStage(t, isOld);
      fates.push(stored);
      await exchange(await exchange(first));
      assert.equal(await isRevoked(), false);
    });
  }

  test("fails as unknown where the database cannot be read, and may be repeated", async (t) => {
    const { first, fates, setDown, exchange, isRevoked } = await openStage(t);
    fates.push(async (write) => {
      await write();
      setDown(true);
      return unknown();
    });
    await assert.rejects(exchange(first), isUnknown);
    setDown(false);
    await exchange(await exchange(first));
    assert.equal(await isRevoked(), false);
  });

  test("may be repeated where it was not stored", async (t) => {
    const { first, fates, exchange, isRevoked } = await openStage(t);
    fates.push(unknown, unknown);
    await assert.rejects(exchange(first), isUnknown);
    await assert.rejects(exchange(first), isUnknown);
    const second = await exchange(first);
    await exchange(second);
    assert.equal(await isRevoked(), false);
  });

  test("may be repeated where it is stored before the repeat", async (t) => {
    const { first, fates, exchange, isRevoked } = await openStage(t);
    const { fate, arrive } = late();
    fates.push(fate);
    await assert.rejects(exchange(first), isUnknown);
    assert.equal((await arrive())[0], 1);
    await exchange(await exchange(first));
    assert.equal(await isRevoked(), false);
  });

  test("may be repeated where it is stored during the repeat", async (t) => {
    const { first, fates, exchange, isRevoked } = await openStage(t);
    const { fate, arrive } = late();
    fates.push(fate, async (write) => {
      assert.equal((await arrive())[0], 1);
      return write();
    });
    await assert.rejects(exchange(first), isUnknown);
    await exchange(await exchange(first));
    assert.equal(await isRevoked(), false);
  });

  for (const attempt of [1, 2]) {
    test(`never replaces a token that was issued later: attempt ${attempt}`, async (t) => {
      const { first, fates, exchange, isRevoked } = await openStage(t);
      const { fate, arrive } = late();
      if (attempt === 2) await exchange(first); // its response is lost
      fates.push(fate);
      await assert.rejects(exchange(first), isUnknown);
      const second = await exchange(first);
      assert.equal((await arrive())[0], 0);
      const third = await exchange(second);
      await exchange(third);
      assert.equal(await isRevoked(), false);
    });
  }
});

describe("two refreshes with one token", () => {
  /** Two exchanges that both read the token before either is stored. */
  async function exchangeTwice(exchange: () => Promise<string>, fates: Fate[]) {
    const both = Promise.withResolvers<void>();
    let here = 0;
    const meet: Fate = async (write) => {
      if (++here === 2) both.resolve();
      await both.promise;
      return write();
    };
    fates.push(meet, meet);
    return Promise.allSettled([exchange(), exchange()]);
  }

  test("both succeed where it is current, as if the first response was lost", async (t) => {
    const { first, fates, exchange, isRevoked, stateOf } = await openStage(t);
    const responses = await exchangeTwice(() => exchange(first), fates);
    const [one = "", two = ""] = responses.map((each) =>
      each.status === "fulfilled" ? each.value : undefined
    );
    assert.ok(one && two && one !== two);
    assert.equal(await isRevoked(), false);
    assert.deepEqual((await Promise.all([one, two].map(stateOf))).sort(), ["current", "used"]);
  });

  test("count as reuse where the token was exchanged before", async (t) => {
    const { first, fates, exchange, isRevoked } = await openStage(t);
    await exchange(first);
    const responses = await exchangeTwice(() => exchange(first), fates);
    assert.deepEqual(responses.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
    assert.equal(await isRevoked(), true);
    await assert.rejects(exchange(first), isRefused);
  });
});

test("a refresh succeeds where the engine writes it twice, the second time in vain", async (t) => {
  const { first, fates, exchange, isRevoked } = await openStage(t);
  const twice: Fate = async (write) => {
    await write();
    return write();
  };
  fates.push(twice, twice);
  const second = await exchange(first);
  const again = await exchange(first); // the response was lost
  assert.notEqual(second, again);
  await exchange(again);
  assert.equal(await isRevoked(), false);
});
