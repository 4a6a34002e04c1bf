import { NewKey } from "../api/backend/key.ts";
import { createSeal } from "../base/seal.ts";
import { resealDatabase } from "../database/settings.ts";
import { auditCommand } from "./backend.ts";
import type { Command } from "./command.ts";
import { Failure } from "./failure.ts";
import { listCommand, type Resource, sendCommand } from "./resource.ts";

const KEY: Resource = {
  noun: "key",
  argument: { name: "KID", meaning: "its id, as key list shows it", example: "k0mhc…" },
  columns: ["kid", "alg", "status", "signs_from", "published_until"],
  shown: ["kid", "alg", "signs_from"],
};

export const KEY_COMMANDS: readonly Command[] = [
  listCommand(KEY, "List the keys that sign access tokens", {
    details: ["--json shows the public keys; the private ones are never shown."],
  }),
  sendCommand(KEY, "rotate", "Make a new signing key", {
    details: [
      "Its algorithm is GATEPOST_SIGNING_ALG. The previous key stays published until the last " +
        "token that it signed has expired, so every token stays valid. For a key that has " +
        "leaked, use key withdraw.",
    ],
    body: NewKey,
    done: () => "A new key has been created.",
  }),
  sendCommand(KEY, "withdraw", "Withdraw a leaked signing key at once", {
    details: [
      "Every access token that it signed is refused, by a running server within a second. " +
        "Refresh tokens stay valid, so apps that have one get a new access token without a " +
        "login. If it is the key that signs now, a new key replaces it at once.",
    ],
    method: "DELETE",
    confirm: (given) => `Withdraw key ${given}, and refuse every token that it signed?`,
    done: (kid) => `Key ${kid} has been withdrawn; the tokens that it signed are refused.`,
  }),
  {
    words: ["key", "reseal"],
    purpose: "Encrypt all stored secrets with the first secret key",
    details: [
      "To replace the secret key, put the new key before the old one in GATEPOST_SECRET_KEY, " +
        "separated by a comma. Restart every server with this value, run this command with it, " +
        "and then remove the old key. If several servers are restarted one by one, first " +
        "restart each with the new key after the old one, so that it can decrypt what the " +
        "others encrypt with the new key. The command works beside a running server, and " +
        "continues where it was interrupted.",
    ],
    examples: ['GATEPOST_SECRET_KEY="$NEW,$OLD" gatepost key reseal'],
    async run(context) {
      const { config: { secretKeys = [] }, interruptible } = context;
      if (secretKeys.length === 0) throw new Failure("GATEPOST_SECRET_KEY is not set.");
      const { database } = await context.openBackend();
      const audit = auditCommand("key.reseal", "database", Date.now());
      const resealed = await interruptible((signal) =>
        resealDatabase(database, createSeal(...secretKeys), audit, signal)
      );
      context.print({ resealed }, () =>
        `All secrets are encrypted with the first key; ${resealed} were not before.`
      );
    },
  },
];
