import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import { type Credentials, type Gatepost, PASSWORD, startGatepost } from "../helpers/gatepost.ts";
import { basicAuth, newAddress, newName } from "../helpers/requests.ts";
import { assertOAuthError } from "../helpers/responses.ts";

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost();
});
after(() => gatepost.stop());

const wrong = (user: Credentials): Credentials => ({ ...user, password: "not the password" });

async function failOften(user: Credentials, times: number, address: string): Promise<void> {
  for (let count = 0; count < times; count++) {
    assert.equal((await gatepost.tryLogin(user, address)).status, 401, `failure ${count + 1}`);
  }
}

describe("POST /consumer/login throttles", () => {
  test("one account from one address after 10 failures, even with the right password", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    await failOften(wrong(user), 10, address);
    for (const credentials of [wrong(user), user]) {
      const response = await gatepost.tryLogin(credentials, address);
      assert.equal(response.status, 429);
      const seconds = Number(response.headers.get("retry-after"));
      assert.ok(Number.isInteger(seconds) && seconds > 0 && seconds <= 900, String(seconds));
    }
  });

  test("user names that differ only in case as one account", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    await failOften(wrong(user), 5, address);
    const shouted = { ...user, username: user.username.toUpperCase() };
    await failOften(wrong(shouted), 5, address);
    assert.equal((await gatepost.tryLogin(user, address)).status, 429);
  });

  test("an unknown user name just like a known one", async () => {
    const [nobody, address] = [{ username: newName("nobody"), password: PASSWORD }, newAddress()];
    await failOften(nobody, 10, address);
    assert.equal((await gatepost.tryLogin(nobody, address)).status, 429);
  });

  test("neither that account elsewhere nor other accounts at that address", async () => {
    const [user, other] = [await gatepost.createUser(), await gatepost.createUser()];
    const address = newAddress();
    await failOften(wrong(user), 10, address);
    assert.equal((await gatepost.tryLogin(user, newAddress())).status, 200);
    assert.equal((await gatepost.tryLogin(other, address)).status, 200);
  });

  test("an account only after 10 new failures once it has logged in", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let round = 0; round < 2; round++) {
      await failOften(wrong(user), 9, address);
      assert.equal((await gatepost.tryLogin(user, address)).status, 200);
    }
  });

  test("an address after 50 failures of any accounts, and no other address", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let count = 0; count < 50; count++) {
      const nobody = { username: newName("nobody"), password: PASSWORD };
      assert.equal((await gatepost.tryLogin(nobody, address)).status, 401, `failure ${count + 1}`);
    }
    assert.equal((await gatepost.tryLogin(user, address)).status, 429);
    assert.equal((await gatepost.tryLogin(user, newAddress())).status, 200);
  });

  test("an address after 50 failures even with successes between them", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let round = 0; round < 5; round++) {
      for (let count = 0; count < 10; count++) {
        await gatepost.tryLogin({ username: newName("nobody"), password: PASSWORD }, address);
      }
      if (round < 4) assert.equal((await gatepost.tryLogin(user, address)).status, 200);
    }
    assert.equal((await gatepost.tryLogin(user, address)).status, 429);
  });

  test("all addresses of one IPv6 /64 as one address", async () => {
    const user = await gatepost.createUser();
    const prefix = `2001:db8:1:${(Math.random() * 0xffff | 0).toString(16)}`;
    for (let host = 1; host <= 10; host++) {
      assert.equal((await gatepost.tryLogin(wrong(user), `${prefix}::${host}`)).status, 401);
    }
    assert.equal((await gatepost.tryLogin(user, `${prefix}:ffff::1`)).status, 429);
    assert.equal((await gatepost.tryLogin(user, "2001:db8:2::1")).status, 200);
  });

  test("guesses that are sent at the same time", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    const responses = await Promise.all(
      Array.from({ length: 40 }, () => gatepost.tryLogin(wrong(user), address)),
    );
    const guesses = responses.filter(({ status }) => status === 401).length;
    // Those in progress when the tenth fails may finish: at most one for each core.
    assert.ok(guesses >= 10 && guesses <= 13, String(guesses));
    assert.equal((await gatepost.tryLogin(user, address)).status, 429);
  });

  test("an account with failures from many addresses by a delay, without locking it", async () => {
    const user = await gatepost.createUser();
    await Promise.all(Array.from({ length: 40 }, () => gatepost.tryLogin(wrong(user))));
    const startMs = performance.now();
    assert.equal((await gatepost.tryLogin(user)).status, 200);
    assert.ok(performance.now() - startMs > 500, "it is slower than the hash alone");
  });

  test("logins with 503 and Retry-After if too many passwords wait, and recovers", async () => {
    const user = await gatepost.createUser();
    const responses = await Promise.all(Array.from({ length: 80 }, () => gatepost.tryLogin(user)));
    const refused = responses.filter(({ status }) => status !== 200);
    assert.ok(refused.length > 0);
    assert.deepEqual([...new Set(refused.map(({ status }) => status))], [503]);
    assert.ok(refused.every(({ headers }) => Number(headers.get("retry-after")) > 0));
    assert.equal((await gatepost.tryLogin(user)).status, 200);
  });
});

describe("the password grant of a confidential app", () => {
  test("is throttled by account only, so unknown user names block no other user", async () => {
    const app = await gatepost.createApp({ grants: ["password"] });
    const [user, address] = [await gatepost.createUser(), newAddress()];
    const grant = ({ username, password }: Credentials) => {
      const fields = { grant_type: "password", username, password };
      const headers = { ...basicAuth(app), "x-forwarded-for": address };
      return gatepost.api.postForm("/authorization/token", fields, headers);
    };
    for (let count = 0; count < 51; count++) {
      const nobody = { username: newName("nobody"), password: PASSWORD };
      assertOAuthError(await grant(nobody), 400, "invalid_grant");
    }
    assert.equal((await grant(user)).status, 200);
    assert.equal((await gatepost.tryLogin(user, address)).status, 200);
    for (let count = 0; count < 10; count++) {
      assertOAuthError(await grant(wrong(user)), 400, "invalid_grant");
    }
    assertOAuthError(await grant(user), 429, "temporarily_unavailable");
    assert.equal((await gatepost.tryLogin(user, address)).status, 429);
  });
});

test("a failed password grant of a public app counts as a failed login", async () => {
  const app = await gatepost.createApp({ type: "public", grants: ["password"] });
  const [user, address] = [await gatepost.createUser(), newAddress()];
  const fields = { grant_type: "password", client_id: app.id, username: user.username };
  const headers = { "x-forwarded-for": address };
  for (let count = 0; count < 10; count++) {
    const form = { ...fields, password: "not the password" };
    const response = await gatepost.api.postForm("/authorization/token", form, headers);
    assertOAuthError(response, 400, "invalid_grant");
  }
  assert.equal((await gatepost.tryLogin(user, address)).status, 429);
});

describe("the address that is throttled", () => {
  /** Logs in from a loopback address of the machine, as a client that is not a trusted proxy. */
  function logInFrom(localAddress: string, user: Credentials, forwardedFor: string) {
    return new Promise<number | undefined>((resolve, reject) => {
      const headers = { "content-type": "application/json", "x-forwarded-for": forwardedFor };
      const url = `${gatepost.url}/consumer/login`;
      const sent = request(url, { method: "POST", localAddress, headers }, (response) => {
        response.resume().once("end", () => resolve(response.statusCode));
      });
      sent.once("error", reject);
      sent.end(JSON.stringify({ username: user.username, password: user.password }));
    });
  }

  test("is the socket's without a trusted proxy, whatever X-Forwarded-For says", async () => {
    const user = await gatepost.createUser();
    for (let count = 0; count < 10; count++) {
      assert.equal(await logInFrom("127.0.0.2", wrong(user), newAddress()), 401);
    }
    assert.equal(await logInFrom("127.0.0.2", user, newAddress()), 429);
    assert.equal(await logInFrom("127.0.0.3", user, newAddress()), 200);
  });

  test("is the last of X-Forwarded-For, which the trusted proxy wrote", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let count = 0; count < 10; count++) {
      await gatepost.tryLogin(wrong(user), `${newAddress()}, ${address}`);
    }
    assert.equal((await gatepost.tryLogin(user, `${newAddress()}, ${address}`)).status, 429);
  });
});
