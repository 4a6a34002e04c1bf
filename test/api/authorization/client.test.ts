import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { describe, test, type TestContext } from "node:test";
import { createClientAuthenticator } from "../../../src/api/authorization/client.ts";
import { parseForm } from "../../../src/base/form.ts";
import { PUBLIC_JWK } from "../../../src/base/jwk.ts";
import { sha256 } from "../../../src/base/secret.ts";
import { sql } from "../../../src/database/sql.ts";
import type { App } from "../../../src/oauth/app.ts";
import { Problem } from "../../../src/base/problem.ts";
import { OAuthError } from "../../../src/oauth/errors.ts";
import { createAccounts } from "../../../src/store/accounts.ts";
import { listPart } from "../../../src/store/list.ts";
import { loadRevocations } from "../../../src/store/revocations.ts";
import { insertApp, replaceAppSecret } from "../../../src/store/apps.ts";
import { AUDIT_LIST } from "../../../src/store/audit.ts";
import { createFailureAudit } from "../../../src/store/failure_audit.ts";
import { assertionClaims, assertionFields, signAssertion } from "../../corpus/client_assertions.ts";
import { openDatabase, sampleApp } from "../../helpers/database.ts";
import { sampleRequest } from "../../helpers/http_request.ts";

const ISSUER = "https://gatepost.example";
const NOW_MS = Date.UTC(2040, 0, 1);
const WINDOW_MS = 15 * 60_000;
const DAY_MS = 24 * 60 * 60_000;

async function open(t: TestContext, more: Partial<App> = {}) {
  const database = openDatabase(t);
  const clock = { nowMs: NOW_MS };
  const now = () => clock.nowMs;
  const app = sampleApp(more);
  const hasSecret = app.type === "confidential" && app.jwks.length === 0;
  await database.write([insertApp(app, hasSecret ? sha256("right") : undefined)]);
  const failures = createFailureAudit(database, now);
  const accounts = createAccounts(database, await loadRevocations(database, now));
  const issuer = ISSUER;
  const clients = createClientAuthenticator({
    accounts, config: { clientMetadata: "off" }, database, failures, issuer, now,
  });
  return {
    database,
    clock,
    app,
    serve: clients.serve,
    /** The failures in the audit log, with their addresses. */
    async listFailures(): Promise<string[]> {
      await failures.flush();
      const page = await listPart(database, AUDIT_LIST, {
        actor: "anonymous",
        action: "app.authenticate_failed",
        limit: 200,
      });
      return page.items.map(({ target, address }) => `${target} from ${address}`);
    },
    /** The app, or the error of its authentication. */
    async authenticate(
      secret: string,
      address = "192.0.2.1",
      id = app.id,
      fields: Readonly<Record<string, string>> = { client_id: id, client_secret: secret },
    ) {
      const form = parseForm(String(new URLSearchParams(fields)));
      assert.ok(form);
      return clients.authenticate(sampleRequest({ address }), form).catch((error: unknown) => {
        assert.ok(error instanceof OAuthError || error instanceof Problem);
        return error;
      });
    },
  };
}

type Clients = Awaited<ReturnType<typeof open>>;

async function failOften({ authenticate }: Clients, address: string): Promise<void> {
  for (let count = 0; count < 50; count++) {
    assertStatus(await authenticate("wrong", address), 401);
  }
}

function assertStatus(outcome: App | OAuthError | Problem, status: 401 | 429): void {
  assert.ok(outcome instanceof Error, "it was accepted");
  assert.equal(outcome.status, status);
}

test("50 failures throttle an address until the first is 15 minutes old", async (t) => {
  const clients = await open(t);
  await failOften(clients, "192.0.2.1");
  clients.clock.nowMs += 60_000;
  const refused = await clients.authenticate("wrong");
  assertStatus(refused, 429);
  assert.deepEqual((refused as Problem).headers, { "Retry-After": String(14 * 60) });
  clients.clock.nowMs = NOW_MS + WINDOW_MS - 1;
  assertStatus(await clients.authenticate("wrong"), 429);
  clients.clock.nowMs = NOW_MS + WINDOW_MS;
  assertStatus(await clients.authenticate("wrong"), 401);
});

test("a secret that another process has just set is accepted at once", async (t) => {
  const clients = await open(t);
  await clients.authenticate("right"); // from now on the app is cached
  await clients.database.write([replaceAppSecret(clients.app.id, sha256("next"), 0)]);
  for (const outcome of await Promise.all(["next", "next"].map((s) => clients.authenticate(s)))) {
    assert.equal((outcome as App).id, clients.app.id);
  }
  assert.deepEqual(await clients.listFailures(), []);
  assertStatus(await clients.authenticate("right"), 401);
});

test("a request that fails runs once, though its app has changed meanwhile", async (t) => {
  const { database, app, serve } = await open(t);
  const form = parseForm(`client_id=${app.id}&client_secret=right`);
  assert.ok(form);
  let times = 0;
  const served = serve(sampleRequest(), form, async () => {
    times++;
    await database.write([replaceAppSecret(app.id, sha256("next"), 0)]);
    throw new OAuthError("invalid_grant", "It is none.");
  });
  await assert.rejects(served, { code: "invalid_grant" });
  assert.equal(times, 1);
});

test("an assertion is not used up by a check against an outdated cached app", async (t) => {
  const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const jwks = [PUBLIC_JWK.parse(publicKey.export({ format: "jwk" }), assert.fail)];
  const clients = await open(t, { jwks, status: "disabled" });
  const { app: { id }, database } = clients;
  const prove = () => {
    const exp = NOW_MS / 1000 + 60;
    const claims = { ...assertionClaims(id, ISSUER), iat: undefined, exp };
    const assertion = signAssertion({ alg: "ES256" }, claims, privateKey);
    return clients.authenticate("", "192.0.2.1", id, assertionFields(assertion));
  };
  assertStatus(await prove(), 401);
  await database.write([sql`UPDATE apps SET status = 'active' WHERE id = ${id}`]);
  assert.equal((await prove() as App).id, id);
});

test("the failures of an IPv6 address count for its /64", async (t) => {
  const clients = await open(t);
  await failOften(clients, "2001:db8::1");
  assertStatus(await clients.authenticate("wrong", "2001:db8::ffff"), 429);
  assertStatus(await clients.authenticate("wrong", "2001:db8:0:1::1"), 401);
});

test("past the limit the right secret is accepted, and no failure is audited", async (t) => {
  const clients = await open(t);
  await failOften(clients, "192.0.2.1");
  const before = await clients.listFailures();
  assertStatus(await clients.authenticate("wrong"), 429);
  assert.equal((await clients.authenticate("right") as App).id, clients.app.id);
  assert.deepEqual(await clients.listFailures(), before);
});

test("a failure is audited with its app, or as unknown for an unknown client id", async (t) => {
  const { authenticate, listFailures, app } = await open(t);
  await authenticate("wrong");
  await authenticate("wrong", "198.51.100.1", "aunknown");
  const seen = await listFailures();
  assert.deepEqual(seen.sort(), [`${app.id} from 192.0.2.1`, "unknown from 198.51.100.1"]);
});

describe("a secret that was replaced", () => {
  const untilMs = NOW_MS + DAY_MS;
  for (const [what, atMs, isGood] of [
    ["is accepted until its end", untilMs - 1, true],
    ["is refused from its end on", untilMs, false],
  ] as const) {
    test(what, async (t) => {
      const clients = await open(t);
      const next = replaceAppSecret(clients.app.id, sha256("next"), untilMs);
      await clients.database.write([next]);
      clients.clock.nowMs = atMs;
      assert.equal(await clients.authenticate("right") instanceof OAuthError, !isGood);
      assert.equal((await clients.authenticate("next") as App).id, clients.app.id);
    });
  }
});

test("a public app authenticates only without a secret, a disabled app never", async (t) => {
  const publicClients = await open(t, { type: "public" });
  assert.equal((await publicClients.authenticate("") as App).id, publicClients.app.id);
  assertStatus(await publicClients.authenticate("right"), 401);
  const disabled = await open(t, { status: "disabled" });
  assertStatus(await disabled.authenticate("right"), 401);
});
