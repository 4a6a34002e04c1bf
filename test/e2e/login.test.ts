import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, test } from "node:test";
import {
  bearer,
  decodeJwt,
  type Gatepost,
  newAddress,
  newName,
  PASSWORD,
  readObject,
  startGatepost,
  type TestUser,
} from "../helpers/gatepost.ts";
import type { Answer } from "../helpers/http_client.ts";

let gatepost: Gatepost;
before(async () => {
  gatepost = await startGatepost();
});
after(() => gatepost.stop());

type Credentials = Pick<TestUser, "username" | "password">;

/** Logs in from an address: its own for every call unless one is given. */
function logIn({ username, password }: Credentials, address = newAddress()): Promise<Answer> {
  const headers = { "x-forwarded-for": address };
  return gatepost.api.postJson("/consumer/login", { username, password }, headers);
}

const wrong = (user: Credentials): Credentials => ({ ...user, password: "not the password" });

async function failOften(user: Credentials, times: number, address: string): Promise<void> {
  for (let count = 0; count < times; count++) {
    assert.equal((await logIn(user, address)).status, 401, `failure ${count + 1}`);
  }
}

describe("POST /consumer/login (SPEC 4.1)", () => {
  test("answers 200 with the token and nothing else, kept out of caches", async () => {
    const answer = await logIn(await gatepost.createUser());
    assert.equal(answer.status, 200);
    assert.match(answer.headers.get("content-type") ?? "", /^application\/json\b/);
    assert.equal(answer.headers.get("cache-control"), "no-store");
    const body = readObject(answer);
    assert.deepEqual(Object.keys(body), ["token"]);
    assert.match(String(body["token"]), /^[\w-]+\.[\w-]+\.[\w-]+$/);
  });

  test("issues a token that opens protected endpoints", async () => {
    const token = await gatepost.login(await gatepost.createUser());
    assert.equal(await gatepost.isAlive(token), true);
  });

  test("issues a token with every scope of the user, to the built-in app login", async () => {
    const user = await gatepost.createUser({ scopes: ["consumer", "backend", "orders"] });
    const { claims } = decodeJwt(await gatepost.login(user));
    assert.deepEqual(String(claims["scope"]).split(" ").sort(), ["backend", "consumer", "orders"]);
    assert.equal(claims["client_id"], "login");
    assert.equal(claims["sub"], user.id);
  });

  test("takes the user name in any case", async () => {
    const user = await gatepost.createUser();
    const username = user.username.toUpperCase();
    assert.equal((await logIn({ ...user, username })).status, 200);
  });

  test("tells passwords apart by case", async () => {
    const user = await gatepost.createUser();
    assert.equal((await logIn({ ...user, password: PASSWORD.toUpperCase() })).status, 401);
  });

  test("ignores members that it does not know", async () => {
    const { username, password } = await gatepost.createUser();
    const body = { username, password, remember: true, "": [{}] };
    assert.equal((await gatepost.api.postJson("/consumer/login", body)).status, 200);
  });

  for (const type of ["application/json; charset=utf-8", "APPLICATION/JSON", "application/x+json"]) {
    test(`takes a body of type ${type}`, async () => {
      const { username, password } = await gatepost.createUser();
      const headers = { "content-type": type };
      const answer = await gatepost.api.postJson("/consumer/login", { username, password }, headers);
      assert.equal(answer.status, 200, answer.text);
    });
  }
});

describe("POST /consumer/login refuses alike", () => {
  const refused: Credentials[] = [];
  before(async () => {
    const [known, disabled] = [await gatepost.createUser(), await gatepost.createUser()];
    await gatepost.change(disabled, { status: "disabled" });
    refused.push(wrong(known), disabled, wrong(disabled), { ...known, username: newName("nobody") });
  });

  test("a wrong password, a disabled and an unknown user: 401, one body, one set of headers", async () => {
    const seen = new Set<string>();
    for (const credentials of refused) {
      const answer = await logIn(credentials);
      assert.equal(answer.status, 401);
      const { request_id: _, ...body } = readObject(answer);
      const headers = [...answer.headers].filter(([name]) => !["date", "x-request-id"].includes(name));
      seen.add(JSON.stringify([body, headers]));
    }
    assert.equal(seen.size, 1, [...seen].join("\n"));
  });

  test("with a challenge (RFC 9110 §15.5.2)", async () => {
    const [credentials] = refused;
    assert.ok(credentials !== undefined);
    assert.notEqual((await logIn(credentials)).headers.get("www-authenticate"), null);
  });

  test("in about the same time: each computes a hash", async () => {
    const tookMs = refused.map((): number[] => []);
    for (let round = 0; round < 7; round++) {
      for (const [index, credentials] of refused.entries()) {
        const startMs = performance.now();
        await logIn(credentials);
        tookMs[index]?.push(performance.now() - startMs);
      }
    }
    const medians = tookMs.map((times) => times.sort((a, b) => a - b)[3] ?? 0);
    // Without its hash a refusal is an order of magnitude faster; a busy machine is not.
    assert.ok(Math.min(...medians) > Math.max(...medians) / 3, medians.join(" ms, "));
  });

  test("a user name that no account can have", async () => {
    for (const username of ["", "a b", "x".repeat(65), "x".repeat(500_000), "a\0", "\ud800", "ü"]) {
      assert.equal((await logIn({ username, password: PASSWORD })).status, 401, username.slice(0, 9));
    }
  });

  test("a password that no account can have", async () => {
    const { username } = await gatepost.createUser();
    for (const password of ["", "short", `${PASSWORD}\0`, "x".repeat(500_000)]) {
      assert.equal((await logIn({ username, password })).status, 401, password.slice(0, 9));
    }
  });
});

describe("POST /consumer/login answers 400 and names the fields", () => {
  const good = { username: "admin", password: PASSWORD };
  const table: [what: string, body: unknown, pointers: string[]][] = [
    ["nothing", {}, ["/password", "/username"]],
    ["no username", { password: PASSWORD }, ["/username"]],
    ["no password", { username: "admin" }, ["/password"]],
    ["a number for a username", { ...good, username: 1 }, ["/username"]],
    ["null for a username", { ...good, username: null }, ["/username"]],
    ["null for a password", { ...good, password: null }, ["/password"]],
    ["a list for a password", { ...good, password: [PASSWORD] }, ["/password"]],
    ["an object for a username", { ...good, username: { eq: "admin" } }, ["/username"]],
    ["true for both", { username: true, password: true }, ["/password", "/username"]],
    ["a list", [good], [""]],
    ["a string", "admin", [""]],
    ["null", null, [""]],
  ];
  for (const [what, body, pointers] of table) {
    test(what, async () => {
      const answer = await gatepost.api.postJson("/consumer/login", body);
      assert.equal(answer.status, 400, answer.text);
      const { errors }: { errors: { pointer: string }[] } = JSON.parse(answer.text);
      assert.deepEqual(errors.map(({ pointer }) => pointer).sort(), pointers);
    });
  }
});

describe("POST /consumer/login answers 415 to", () => {
  const types = [
    "application/x-www-form-urlencoded",
    "text/plain",
    "text/json",
    "application/jsonp",
    "application/json; charset=utf-16",
  ];
  for (const type of types) {
    test(type, async () => {
      const headers = { "content-type": type };
      const answer = await gatepost.api.postJson("/consumer/login", {}, headers);
      assert.equal(answer.status, 415, answer.text);
    });
  }
  test("a body without a type", async () => {
    const body = new TextEncoder().encode("{}");
    assert.equal((await gatepost.api.send("POST", "/consumer/login", { body })).status, 415);
  });
});

describe("POST /consumer/login throttles", () => {
  test("one account from one address after 10 failures, the right password too", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    await failOften(wrong(user), 10, address);
    for (const credentials of [wrong(user), user]) {
      const answer = await logIn(credentials, address);
      assert.equal(answer.status, 429);
      const seconds = Number(answer.headers.get("retry-after"));
      assert.ok(Number.isInteger(seconds) && seconds > 0 && seconds <= 900, String(seconds));
    }
  });

  test("an account whose name is spelled in another case as the same one", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    await failOften(wrong(user), 5, address);
    const shouted = { ...user, username: user.username.toUpperCase() };
    await failOften(wrong(shouted), 5, address);
    assert.equal((await logIn(user, address)).status, 429);
  });

  test("a name that nobody has just as one that somebody has", async () => {
    const [nobody, address] = [{ username: newName("nobody"), password: PASSWORD }, newAddress()];
    await failOften(nobody, 10, address);
    assert.equal((await logIn(nobody, address)).status, 429);
  });

  test("neither the account at other addresses nor other accounts at this one", async () => {
    const [user, other] = [await gatepost.createUser(), await gatepost.createUser()];
    const address = newAddress();
    await failOften(wrong(user), 10, address);
    assert.equal((await logIn(user, newAddress())).status, 200);
    assert.equal((await logIn(other, address)).status, 200);
  });

  test("afresh after a success", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let round = 0; round < 2; round++) {
      await failOften(wrong(user), 9, address);
      assert.equal((await logIn(user, address)).status, 200);
    }
  });

  test("an address after 50 failures whatever the accounts, and no other address", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let count = 0; count < 50; count++) {
      const nobody = { username: newName("nobody"), password: PASSWORD };
      assert.equal((await logIn(nobody, address)).status, 401, `failure ${count + 1}`);
    }
    assert.equal((await logIn(user, address)).status, 429);
    assert.equal((await logIn(user, newAddress())).status, 200);
  });

  test("the 50 of an address with successes between them", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let round = 0; round < 5; round++) {
      for (let count = 0; count < 10; count++) {
        await logIn({ username: newName("nobody"), password: PASSWORD }, address);
      }
      if (round < 4) assert.equal((await logIn(user, address)).status, 200);
    }
    assert.equal((await logIn(user, address)).status, 429);
  });

  test("the addresses of one IPv6 /64 as one", async () => {
    const user = await gatepost.createUser();
    const prefix = `2001:db8:1:${(Math.random() * 0xffff | 0).toString(16)}`;
    for (let host = 1; host <= 10; host++) {
      assert.equal((await logIn(wrong(user), `${prefix}::${host}`)).status, 401);
    }
    assert.equal((await logIn(user, `${prefix}:ffff::1`)).status, 429);
    assert.equal((await logIn(user, "2001:db8:2::1")).status, 200);
  });

  test("guesses that are sent all at once", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    const answers = await Promise.all(
      Array.from({ length: 40 }, () => logIn(wrong(user), address)),
    );
    const guesses = answers.filter(({ status }) => status === 401).length;
    // Those that are being checked when the tenth fails may end: one for each core at most.
    assert.ok(guesses >= 10 && guesses <= 13, String(guesses));
    assert.equal((await logIn(user, address)).status, 429);
  });

  test("an account that fails from many addresses by slowing it down, never by locking it", async () => {
    const user = await gatepost.createUser();
    await Promise.all(Array.from({ length: 40 }, () => logIn(wrong(user))));
    const startMs = performance.now();
    assert.equal((await logIn(user)).status, 200);
    assert.ok(performance.now() - startMs > 500, "it is slower than the hash alone");
  });

  test("with 503 and Retry-After when too many passwords wait, and recovers", async () => {
    const user = await gatepost.createUser();
    const answers = await Promise.all(Array.from({ length: 80 }, () => logIn(user)));
    const refused = answers.filter(({ status }) => status !== 200);
    assert.ok(refused.length > 0);
    assert.deepEqual([...new Set(refused.map(({ status }) => status))], [503]);
    assert.ok(refused.every(({ headers }) => Number(headers.get("retry-after")) > 0));
    assert.equal((await logIn(user)).status, 200);
  });
});

describe("the address that is throttled", () => {
  /** Logs in from a loopback address of the machine, as a client that is no trusted proxy. */
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

  test("is the socket's where that is no trusted proxy: X-Forwarded-For is not believed", async () => {
    const user = await gatepost.createUser();
    for (let count = 0; count < 10; count++) {
      assert.equal(await logInFrom("127.0.0.2", wrong(user), newAddress()), 401);
    }
    assert.equal(await logInFrom("127.0.0.2", user, newAddress()), 429);
    assert.equal(await logInFrom("127.0.0.3", user, newAddress()), 200);
  });

  test("is what the trusted proxy saw: what a client wrote before it is not believed", async () => {
    const [user, address] = [await gatepost.createUser(), newAddress()];
    for (let count = 0; count < 10; count++) {
      await logIn(wrong(user), `${newAddress()}, ${address}`);
    }
    assert.equal((await logIn(user, `${newAddress()}, ${address}`)).status, 429);
  });
});

test("a login token is of no use at another service: it names this one as its audience", async () => {
  const { claims } = decodeJwt(gatepost.adminToken);
  assert.deepEqual([claims["iss"], claims["aud"]], [gatepost.issuer, gatepost.issuer]);
  assert.equal((await gatepost.api.get("/backend/user", bearer(gatepost.adminToken))).status, 200);
});
