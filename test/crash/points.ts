/** A point in an event's life at which the server is killed, and how it is reached. */
export type KillPoint =
  /** Around the commit of a transaction with this text in it. */
  | { readonly kind: "commit"; readonly when: "before" | "after"; readonly text: string }
  /** When a handler has dispatched and not returned yet. */
  | { readonly kind: "handler" }
  /** When a callback has come in and has no response yet. */
  | { readonly kind: "post" }
  /** After SIGTERM, while attempts are in flight. */
  | { readonly kind: "shutdown" }
  /** At any time. */
  | { readonly kind: "random" };

const CLAIM = "UPDATE deliveries SET claim = ?, dueAtMs";

/** Every point by its name, in the order of an event's life. */
export const KILL_POINTS: Readonly<Record<string, KillPoint>> = {
  "in the handler": { kind: "handler" },
  "before the commit": { kind: "commit", when: "before", text: "INSERT INTO events" },
  "after the commit, before the response": {
    kind: "commit",
    when: "after",
    text: "INSERT INTO events",
  },
  "before the fan-out": { kind: "commit", when: "before", text: "INSERT INTO deliveries" },
  "after the fan-out": { kind: "commit", when: "after", text: "INSERT INTO deliveries" },
  "before the claim": { kind: "commit", when: "before", text: CLAIM },
  "after the claim": { kind: "commit", when: "after", text: CLAIM },
  "during the POST": { kind: "post" },
  "after the response, before the record": {
    kind: "commit",
    when: "before",
    text: "INSERT INTO attempts",
  },
  "after the record": { kind: "commit", when: "after", text: "INSERT INTO attempts" },
  "during shutdown": { kind: "shutdown" },
};

/** Under load, at any time. */
export const RANDOM_POINT = "at random";
