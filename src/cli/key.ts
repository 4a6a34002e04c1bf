import { createSeal } from "../base/seal.ts";
import { resealDatabase } from "../database/settings.ts";
import { auditOwn, ownAnswer } from "./backend.ts";
import type { Command } from "./command.ts";
import { Failure } from "./failure.ts";
import { column, itemPath, printList } from "./listing.ts";
import { formatPairs } from "./table.ts";

const RESOURCE = "/backend/key";

/** The commands of `gatepost key`. */
export const KEY_COMMANDS: readonly Command[] = [
  {
    words: ["key", "list"],
    purpose: "List the keys that sign access tokens",
    arguments: [],
    options: {},
    details: ["--json has their public parts; private ones are never shown."],
    examples: ["gatepost key list"],
    run: (context) =>
      printList(context, RESOURCE, {}, [
        column("KID", "kid"),
        column("ALG", "alg"),
        column("STATUS", "status"),
        column("SIGNS FROM", "signs_from"),
        column("PUBLISHED UNTIL", "published_until"),
      ]),
  },
  {
    words: ["key", "rotate"],
    purpose: "Make a new signing key",
    arguments: [],
    options: {
      "at-once": { meaning: "sign with it at once; otherwise it is published 10 minutes before" },
    },
    details: [
      "Its algorithm is that of GATEPOST_SIGNING_ALG. The key before stays published until the " +
        "last token that it signed has expired, so no token breaks. For a key that has leaked " +
        "this is not enough: see key withdraw.",
    ],
    examples: ["gatepost key rotate"],
    async run(context) {
      const isAtOnce = context.values.flag("at-once") ?? false;
      const backend = await context.openBackend();
      const body = JSON.stringify(isAtOnce ? { at_once: true } : {});
      const answer = await backend.call("POST", RESOURCE, body);
      context.print(answer, (key) =>
        `There is a new key.\n\n${formatPairs([
          ["kid", key["kid"]],
          ["alg", key["alg"]],
          ["signs from", key["signs_from"]],
        ])}`
      );
    },
  },
  {
    words: ["key", "withdraw"],
    purpose: "Take a signing key out of use at once: it has leaked",
    arguments: [{ name: "KID", meaning: "the key's id, as key list shows it" }],
    options: {},
    details: [
      "Every access token that it signed is refused from then on, by a running server within a " +
        "second; who holds a refresh token gets a new one without logging in. Where it is the " +
        "key that signs, a new one takes its place at once.",
    ],
    confirm: (values) => `End every token that key ${values.argument("KID")} signed?`,
    examples: ["gatepost key withdraw k0mhc…"],
    async run(context) {
      const kid = context.values.argument("KID");
      const backend = await context.openBackend();
      const answer = await backend.call("DELETE", itemPath(RESOURCE, kid));
      context.print(answer, () =>
        `Key ${kid} has been withdrawn; the tokens that it signed are refused.`
      );
    },
  },
  {
    words: ["key", "reseal"],
    purpose: "Seal all with the first of several secret keys",
    arguments: [],
    options: {},
    details: [
      "To replace the key that seals: put the new one before the old one in GATEPOST_SECRET_KEY, " +
        "separated by a comma, restart every server with it, run this with it, too, and then " +
        "drop the old one. It works beside a running server, and goes on where it was interrupted.",
    ],
    examples: ['GATEPOST_SECRET_KEY="$NEW,$OLD" gatepost key reseal'],
    async run(context) {
      const { config: { secretKeys = [] }, interruptible } = context;
      if (secretKeys.length === 0) throw new Failure("GATEPOST_SECRET_KEY is not set.");
      const { database } = await context.openBackend();
      const audit = auditOwn("key.reseal", "database", Date.now());
      const resealed = await interruptible((signal) =>
        resealDatabase(database, createSeal(...secretKeys), audit, signal)
      );
      context.print(ownAnswer({ resealed }), () =>
        `All is sealed with the first key; ${resealed} secrets had to be.`
      );
    },
  },
];
