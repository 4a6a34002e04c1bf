import { argon2, timingSafeEqual } from "node:crypto";
import { Problem } from "./problem.ts";
import { randomBytes } from "./secret.ts";

// OWASP's second choice of argon2id parameters: 19 MiB, two passes, one lane.
const MEMORY_KIB = 19_456;
const PASSES = 2;
const TAG_LENGTH = 32;

/** How long a password that is set may be, in bytes of UTF-8; a longer one is always wrong. */
export const PASSWORD_BYTES = { min: 8, max: 1024 } as const;

/** Hashes and checks passwords; every call may throw Problem 503 when too many wait already. */
export interface PasswordHasher {
  /** The PHC string of a new hash. */
  hash(password: string): Promise<string>;
  /**
   * Whether the password belongs to the PHC string. Without one (an unknown user) a dummy hash is
   * computed and the answer is false, so that both cases take the same time; likewise for a
   * password that is too long, whose length must buy no work. `turn` is asked when the turn has
   * come and told the result; up to the hasher's limit of others are checked in between, so to
   * admit is to count. Then a limit on failures holds for guesses sent all at once, too. Undefined
   * when it did not admit this one.
   */
  verify(password: string, phc: string | undefined, turn?: Turn): Promise<boolean | undefined>;
  /** How many hashes run now, and how many wait. */
  load(): { running: number; waiting: number };
}

/** Decides on each check when its turn has come. */
export interface Turn {
  admit(): Promise<boolean> | boolean;
  report(isRight: boolean): void;
}

/**
 * How many threads libuv's pool is to have, where nobody says otherwise: one for each core up to
 * libuv's own default of four, and at least one that is free beside a hash. Any of them may come to
 * hash, and each keeps the memory of its last hash ever after.
 */
export function poolSize(cores: number): number {
  return Math.max(2, Math.min(cores, 4));
}

/**
 * How many hashes may run at once: one core stays free for requests, and so does one thread of
 * libuv's pool, which files and DNS share.
 */
export function hashLimit(cores: number, poolThreads: number): number {
  return Math.max(1, Math.min(cores - 1, poolThreads - 1));
}

/** Makes a hasher that runs at most `limit` hashes at once and lets `queueLimit` more wait. */
export function createPasswordHasher(limit: number, queueLimit = 64): PasswordHasher {
  let running = 0;
  const waiting: (() => void)[] = [];
  const dummy = formatPhc(randomBytes(16), randomBytes(TAG_LENGTH));

  async function inTurn<T>(work: () => Promise<T>): Promise<T> {
    if (running >= limit) {
      if (waiting.length >= queueLimit) {
        throw new Problem(503, "busy", "Too many passwords are being checked; try again shortly.", {
          headers: { "Retry-After": "2" },
        });
      }
      // The one that finishes hands its place over, so `running` stays as it is.
      await new Promise<void>((resolve) => waiting.push(resolve));
    } else {
      running++;
    }
    try {
      return await work();
    } finally {
      const next = waiting.shift();
      if (next) next();
      else running--;
    }
  }

  return {
    hash: (password) =>
      inTurn(async () => {
        const salt = randomBytes(16);
        return formatPhc(salt, await derive(password, salt));
      }),
    verify: (password, phc, turn) =>
      inTurn(async () => {
        if (turn && !await turn.admit()) return undefined;
        const { salt, tag } = parsePhc(phc ?? dummy);
        // Normalization takes time by the square of the length (CWE-407).
        const isPossible = Buffer.byteLength(password) <= PASSWORD_BYTES.max;
        const given = await derive(isPossible ? password : "", salt);
        const isRight = timingSafeEqual(given, tag) && isPossible && phc !== undefined;
        turn?.report(isRight);
        return isRight;
      }),
    load: () => ({ running, waiting: waiting.length }),
  };
}

function derive(password: string, salt: Buffer): Promise<Buffer> {
  const message = Buffer.from(password.normalize("NFC"));
  return new Promise((resolve, reject) => {
    argon2(
      "argon2id",
      {
        message,
        nonce: salt,
        parallelism: 1,
        tagLength: TAG_LENGTH,
        memory: MEMORY_KIB,
        passes: PASSES,
      },
      (error, tag) => error ? reject(error) : resolve(tag),
    );
  });
}

function formatPhc(salt: Buffer, tag: Buffer): string {
  const parameters = `m=${MEMORY_KIB},t=${PASSES},p=1`;
  return `$argon2id$v=19$${parameters}$${unpadded(salt)}$${unpadded(tag)}`;
}

function unpadded(bytes: Buffer): string {
  return bytes.toString("base64").replace(/=+$/, "");
}

/** Reads what `formatPhc` wrote; anything else is damage to the database. */
function parsePhc(phc: string): { salt: Buffer; tag: Buffer } {
  const [, name, version, parameters, salt, tag] = phc.split("$");
  const tagBytes = Buffer.from(tag ?? "", "base64");
  if (
    name !== "argon2id" || version !== "v=19" ||
    parameters !== `m=${MEMORY_KIB},t=${PASSES},p=1` || !salt || tagBytes.length !== TAG_LENGTH
  ) {
    throw new Error("A stored password hash cannot be read");
  }
  return { salt: Buffer.from(salt, "base64"), tag: tagBytes };
}
