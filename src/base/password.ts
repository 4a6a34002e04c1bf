import { argon2, timingSafeEqual } from "node:crypto";
import { promisify } from "node:util";
import { Problem } from "./problem.ts";
import { randomBytes } from "./secret.ts";

// OWASP's second choice of argon2id parameters: 19 MiB, two passes, one lane.
const MEMORY_KIB = 19_456;
const PASSES = 2;
const TAG_LENGTH = 32;
const PHC_START = `$argon2id$v=19$m=${MEMORY_KIB},t=${PASSES},p=1$`;

const deriveKey = promisify(argon2);

/** The length of a new password, in bytes of UTF-8. A longer password never verifies. */
export const PASSWORD_BYTES = { min: 8, max: 1024 } as const;

/** Hashes and checks passwords; every call may throw Problem 503 when too many wait already. */
export type PasswordHasher = ReturnType<typeof createPasswordHasher>;

/** Admits a password check just before the check begins, and gets its result. */
export interface Turn {
  admit(): Promise<boolean> | boolean;
  report(isRight: boolean): Promise<void> | void;
}

/**
 * Returns the default size of libuv's pool: one thread for each core up to libuv's default of four,
 * and at least two, so that one is free beside a hash. Each keeps its last hash's memory for good.
 */
export function poolSize(cores: number): number {
  return Math.max(2, Math.min(cores, 4));
}

/**
 * Returns how many hashes may run at once. One core stays free where there are several, and one
 * pool thread for files and DNS.
 */
export function hashLimit(cores: number, poolThreads: number): number {
  return Math.max(1, Math.min(cores - 1, poolThreads - 1));
}

/** Makes a hasher that runs at most `limit` hashes at once and lets `queueLimit` more wait. */
export function createPasswordHasher(limit: number, queueLimit = 64) {
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
      // The hash that ends starts the next one, so `running` stays as it is.
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
    /** The PHC string of a new hash. */
    hash: (password: string): Promise<string> =>
      inTurn(async () => {
        const salt = randomBytes(16);
        return formatPhc(salt, await derive(password, salt));
      }),
    /**
     * Whether the password belongs to the PHC string; undefined where `turn` does not admit the
     * check. Without a PHC string (an unknown user) a dummy hash is computed and the result is
     * false, so that both cases take the same time. The same happens for a password that is too
     * long, which must cause no more work. Between `admit` and the end of `report` other checks
     * run, up to the hasher's limit. If only `report` counted failures, that many guesses sent at
     * once would exceed a limit.
     */
    verify: (password: string, phc: string | undefined, turn?: Turn) =>
      inTurn(async () => {
        if (turn && !await turn.admit()) return undefined;
        const { salt, tag } = parsePhc(phc ?? dummy);
        // Normalization takes time quadratic in the length (CWE-407).
        const isPossible = Buffer.byteLength(password) <= PASSWORD_BYTES.max;
        const given = await derive(isPossible ? password : "", salt);
        const isRight = timingSafeEqual(given, tag) && isPossible && phc !== undefined;
        await turn?.report(isRight);
        return isRight;
      }),
  };
}

function derive(password: string, salt: Buffer): Promise<Buffer> {
  const message = Buffer.from(password.normalize("NFC"));
  const cost = { memory: MEMORY_KIB, passes: PASSES, parallelism: 1, tagLength: TAG_LENGTH };
  return deriveKey("argon2id", { message, nonce: salt, ...cost });
}

function formatPhc(salt: Buffer, tag: Buffer): string {
  const parts = [salt, tag].map((bytes) => bytes.toBase64({ omitPadding: true }));
  return PHC_START + parts.join("$");
}

/** Reads what `formatPhc` wrote; anything else is damage to the database. */
function parsePhc(phc: string): { salt: Buffer; tag: Buffer } {
  const [salt = "", text = ""] = phc.slice(PHC_START.length).split("$");
  const tag = Buffer.from(text, "base64");
  if (!phc.startsWith(PHC_START) || !salt || tag.length !== TAG_LENGTH) {
    throw new Error("A stored password hash cannot be read");
  }
  return { salt: Buffer.from(salt, "base64"), tag };
}
