import type { Command } from "./command.ts";
import { column, printList } from "./listing.ts";
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
        "last token that it signed has expired, so no token breaks. After a leak withdraw the " +
        "leaked key: DELETE /backend/key/{kid}.",
    ],
    examples: ["gatepost key rotate"],
    async run(context) {
      const isAtOnce = context.values.flag("at-once") ?? false;
      const backend = await context.openBackend({ create: true });
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
];
