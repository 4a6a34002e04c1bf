import assert from "node:assert/strict";
import { argon2Sync } from "node:crypto";
import { describe, test } from "node:test";
import {
  createPasswordHasher,
  hashLimit,
  type PasswordHasher,
  poolSize,
  type Turn,
} from "../../src/base/password.ts";
import { Problem } from "../../src/base/problem.ts";

const PHC = /^\$argon2id\$v=19\$m=19456,t=2,p=1\$([A-Za-z0-9+/]{22})\$([A-Za-z0-9+/]{43})$/;
const PASSWORD = "correct horse battery";

const hasher = createPasswordHasher(2);

test("argon2id of this Node gives the test vector of RFC 9106 §5.3", () => {
  const tag = argon2Sync("argon2id", {
    message: Buffer.alloc(32, 1),
    nonce: Buffer.alloc(16, 2),
    secret: Buffer.alloc(8, 3),
    associatedData: Buffer.alloc(12, 4),
    parallelism: 4,
    memory: 32,
    passes: 3,
    tagLength: 32,
  });
  assert.equal(
    tag.toString("hex"),
    "0d640df58d78766c08c037a34a8b53c9d01ef0452d75b65eb52520e96b01e659",
  );
});

test("hash() returns a PHC string: argon2id with 19 MiB, two passes, one lane", async () => {
  assert.match(await hasher.hash(PASSWORD), PHC);
});

test("hash() returns the tag that argon2id gives for its salt and parameters", async () => {
  const [, salt = "", tag = ""] = PHC.exec(await hasher.hash(PASSWORD)) ?? [];
  const expected = argon2Sync("argon2id", {
    message: Buffer.from(PASSWORD),
    nonce: Buffer.from(salt, "base64"),
    parallelism: 1,
    memory: 19 * 1024,
    passes: 2,
    tagLength: 32,
  });
  assert.equal(expected.toString("base64").replaceAll("=", ""), tag);
});

test("hash() uses a new salt for each hash", async () => {
  const hashes = await Promise.all([hasher.hash(PASSWORD), hasher.hash(PASSWORD)]);
  assert.notEqual(PHC.exec(hashes[0])?.[1], PHC.exec(hashes[1])?.[1]);
});

describe("verify()", () => {
  const table: [what: string, stored: string, given: string, isRight: boolean][] = [
    ["accepts the right password", PASSWORD, PASSWORD, true],
    ["refuses another password", PASSWORD, "correct horse batterz", false],
    ["refuses another case", PASSWORD, "Correct horse battery", false],
    ["refuses an added space", PASSWORD, `${PASSWORD} `, false],
    ["refuses a password without its end", PASSWORD, PASSWORD.slice(0, -1), false],
    ["refuses an empty password", PASSWORD, "", false],
    ["refuses a difference after a NUL", `${PASSWORD}\u0000a`, `${PASSWORD}\u0000b`, false],
    ["refuses a difference in byte 1,024", "x".repeat(1024), `${"x".repeat(1023)}y`, false],
    ["accepts another Unicode form of the password", "p\u00e4ssword", "pa\u0308ssword", true],
    ["refuses a letter that only looks the same", "password", "p\u0430ssword", false],
  ];
  for (const [what, stored, given, isRight] of table) {
    test(what, async () => {
      assert.equal(await hasher.verify(given, await hasher.hash(stored)), isRight);
    });
  }
});

test("verify() accepts a PHC string of another program with the same parameters", async () => {
  const salt = Buffer.alloc(16, 9);
  const tag = argon2Sync("argon2id", {
    message: Buffer.from(PASSWORD),
    nonce: salt,
    parallelism: 1,
    memory: 19_456,
    passes: 2,
    tagLength: 32,
  });
  const [saltText, tagText] = [salt, tag]
    .map((bytes) => bytes.toString("base64").replace(/=+$/, ""));
  const phc = `$argon2id$v=19$m=19456,t=2,p=1$${saltText}$${tagText}`;
  assert.equal(await hasher.verify(PASSWORD, phc), true);
});

describe("verify() throws an error that is not a Problem for the damaged hash", () => {
  const table = [
    "",
    PASSWORD,
    "$argon2id$v=19$m=19456,t=2,p=1$AAAA",
    "$argon2i$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$" + "A".repeat(43),
    "$argon2id$v=16$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$" + "A".repeat(43),
    "$argon2id$v=19$m=8,t=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$" + "A".repeat(43),
    "$argon2id$v=19$m=19456,t=2,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAA",
  ];
  for (const phc of table) {
    test(JSON.stringify(phc), async () => {
      await assert.rejects(hasher.verify(PASSWORD, phc), (error: unknown) => {
        assert.ok(error instanceof Error && !(error instanceof Problem));
        assert.ok(phc === "" || !error.message.includes(phc));
        return true;
      });
    });
  }
});

test("verify() refuses any password without a hash, as for an unknown user", async () => {
  for (const password of [PASSWORD, "", "\u0000"]) {
    assert.equal(await hasher.verify(password, undefined), false);
  }
});

test("verify() uses as much CPU time for an unknown user or a very long password", async () => {
  const alone = createPasswordHasher(1);
  const phc = await alone.hash(PASSWORD);
  const timeOf = async (given: string, stored: string | undefined) => {
    const times: number[] = [];
    for (let round = 0; round < 9; round++) {
      // CPU time, since other programs may slow the machine.
      const before = process.cpuUsage();
      await alone.verify(given, stored);
      times.push(process.cpuUsage(before).user / 1000);
    }
    return Math.min(...times);
  };
  const known = await timeOf("a wrong password", phc);
  // Normalization reorders these marks, in time quadratic in their number.
  const long = "\u0344".repeat(16_300) + "\u0316".repeat(16_300);
  for (const [given, stored] of [["a wrong password", undefined], [long, phc], [long, undefined]]) {
    const other = await timeOf(given ?? "", stored);
    assert.ok(other > known / 2 && other < known * 2, `${known} ms, ${other} ms`);
  }
});

test("verify() accepts a password of 1,024 bytes, and never a longer one", async () => {
  const [longest, tooLong] = ["\u00e4".repeat(512), "x".repeat(1025)];
  assert.equal(await hasher.verify(longest, await hasher.hash(longest)), true);
  assert.equal(await hasher.verify(tooLong, await hasher.hash(tooLong)), false);
  assert.equal(await hasher.verify(tooLong, await hasher.hash("")), false);
});

test("at most `limit` hashes run at once; the others wait and start in order", async () => {
  const own = createPasswordHasher(2);
  const begun: number[] = [];
  const running: number[] = []; // counted when each begins
  let ended = 0;
  await Promise.all(Array.from({ length: 6 }, (_, index) =>
    own.verify(PASSWORD, undefined, {
      admit: () => running.push(begun.push(index) - ended) > 0,
      report: () => void ended++,
    })));
  assert.deepEqual(begun, [0, 1, 2, 3, 4, 5]);
  assert.equal(Math.max(...running), 2);
});

test("by default 64 calls wait in the queue; the next call gets 503 with Retry-After", async () => {
  const own = createPasswordHasher(1);
  const refuse: Turn = { admit: () => false, report: () => {} };
  const all = Array.from({ length: 65 }, () => own.verify(PASSWORD, undefined, refuse));
  await Promise.all([
    assert.rejects(own.verify(PASSWORD, undefined), isBusy),
    assert.rejects(own.hash(PASSWORD), isBusy),
  ]);
  assert.deepEqual(new Set(await Promise.all(all)), new Set([undefined]));
  assert.match(await own.hash(PASSWORD), PHC);
});

test("with a queue of 0 no call waits", async () => {
  const own = createPasswordHasher(1, 0);
  const first = own.hash(PASSWORD);
  await assert.rejects(own.hash(PASSWORD), isBusy);
  assert.match(await first, PHC);
});

test("a hash that fails lets the next one run", async () => {
  const own = createPasswordHasher(1, 1);
  const failing = own.verify(PASSWORD, "damaged");
  const next = own.hash(PASSWORD);
  await assert.rejects(failing);
  assert.match(await next, PHC);
  const impatient = createPasswordHasher(1, 0);
  await assert.rejects(impatient.verify(PASSWORD, "damaged"));
  assert.match(await impatient.hash(PASSWORD), PHC);
});

test("verify() returns undefined and reports nothing if `admit` refuses", async () => {
  const own = createPasswordHasher(1);
  const phc = await own.hash(PASSWORD);
  let reports = 0;
  const turn: Turn = { admit: () => false, report: () => void reports++ };
  assert.equal(await own.verify(PASSWORD, phc, turn), undefined);
  assert.equal(reports, 0);
});

test("verify() reports each admitted result, also that of an unknown user", async () => {
  const own = createPasswordHasher(1);
  const phc = await own.hash(PASSWORD);
  const reports: boolean[] = [];
  const turn: Turn = { admit: () => true, report: (isRight) => void reports.push(isRight) };
  await own.verify(PASSWORD, phc, turn);
  await own.verify("wrong password", phc, turn);
  await own.verify(PASSWORD, undefined, turn);
  assert.deepEqual(reports, [true, false, false]);
});

for (const limit of [1, 3]) {
  test(`\`admit\` limits parallel guesses, with ${limit} hashes at once`, async () => {
    const own = createPasswordHasher(limit);
    const phc = await own.hash(PASSWORD);
    assert.equal(await countGuesses(own, phc, 12, 4), 4);
  });
}

describe("hashLimit() leaves one core and one pool thread free if there are several", () => {
  const table: [cores: number, threads: number, limit: number][] = [
    [1, 4, 1],
    [2, 4, 1],
    [4, 4, 3],
    [8, 4, 3],
    [64, 4, 3],
    [8, 16, 7],
    [2, 1, 1],
    [1, 1, 1],
    [16, 2, 1],
  ];
  for (const [cores, threads, limit] of table) {
    test(`${cores} cores, ${threads} threads: ${limit} at once`, () => {
      assert.equal(hashLimit(cores, threads), limit);
    });
  }
});

test("poolSize() is one thread for each core, at least two and at most libuv's four", () => {
  assert.deepEqual([1, 2, 3, 4, 8, 64].map(poolSize), [2, 2, 3, 4, 4, 4]);
});

test("hashLimit() is the same for a pool of poolSize() as for libuv's default of 4", () => {
  for (const cores of [1, 2, 3, 4, 8, 64]) {
    assert.equal(hashLimit(cores, poolSize(cores)), hashLimit(cores, 4), `${cores} cores`);
  }
});

/** Sends wrong guesses all at once, and returns how many a counter of `limit` let be checked. */
async function countGuesses(
  own: PasswordHasher,
  phc: string,
  guesses: number,
  limit: number,
): Promise<number> {
  let counted = 0;
  const turn: Turn = { admit: () => counted < limit && ++counted > 0, report: () => {} };
  const results = await Promise.all(
    Array.from({ length: guesses }, (_, at) => own.verify(`guess number ${at}`, phc, turn)),
  );
  return results.filter((result) => result === false).length;
}

function isBusy(error: unknown): boolean {
  assert.ok(error instanceof Problem);
  assert.equal(error.status, 503);
  assert.match(String(error.headers["Retry-After"]), /^[1-9][0-9]*$/);
  return true;
}
