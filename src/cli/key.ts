import { NewKey } from "../api/backend/key.ts";
import { createSeal } from "../base/seal.ts";
import { resealDatabase } from "../database/settings.ts";
import { auditCommand } from "./backend.ts";
import type { Command } from "./command.ts";
import { Failure } from "./failure.ts";
import { listCommand, type Resource, sendCommand } from "./resource.ts";

const KEY: Resource = {
  noun: "key",
  argument: { name: "KID", meaning: "the key's id, as key list shows it", example: "k0mhc…" },
  columns: ["kid", "alg", "status", "signs_from", "published_until"],
  shown: ["kid", "alg", "signs_from"],
};

export const KEY_COMMANDS: readonly Command[] = [
  listCommand(KEY, "List the keys that sign access tokens", {
    details: ["--json has their public parts; private ones are never shown."],
  }),
  sendCommand(KEY, "rotate", "Make a new signing key", {
    details: [
      "Its algorithm is that of GATEPOST_SIGNING_ALG. The key before stays published until the " +
        "last token that it signed has expired, so no token breaks. For a key that has leaked " +
        "this is not enough: see key withdraw.",
    ],
    body: NewKey,
    done: () => "There is a new key.",
  }),
  sendCommand(KEY, "withdraw", "Take a signing key out of use at once: it has leaked", {
    details: [
      "Every access token that it signed is refused from then on, by a running server within a " +
        "second; who holds a refresh token gets a new one without logging in. Where it is the " +
        "key that signs, a new one takes its place at once.",
    ],
    method: "DELETE",
    confirm: (given) => `End every token that key ${given} signed?`,
    done: (kid) => `Key ${kid} has been withdrawn; the tokens that it signed are refused.`,
  }),
  {
    words: ["key", "reseal"],
    purpose: "Encrypt all with the first of several secret keys",
    details: [
      "To replace the key that encrypts: put the new one before the old one in " +
        "GATEPOST_SECRET_KEY, separated by a comma, restart every server with it, run this with " +
        "it, too, and then drop the old one. Of several servers that are restarted one by one, " +
        "each has to have the new one behind the old one first, to decrypt what the others " +
        "encrypt with it. It works beside a running server, and continues where it was " +
        "interrupted.",
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
        `All is encrypted with the first key; ${resealed} secrets had to be.`
      );
    },
  },
];
