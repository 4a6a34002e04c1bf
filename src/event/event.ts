import type { FieldsOf } from "../base/fields.ts";
import { idOf } from "../base/id.ts";
import { encodeJson } from "../base/json.ts";
import {
  ANYTHING,
  type Check,
  described,
  type Infer,
  matching,
  named,
  object,
  oneOf,
  optional,
  record,
  type Shape,
  shown,
  text,
  TEXT,
} from "../base/shape.ts";
import { TIME } from "../base/time.ts";

/** Which request or job dispatched an event, and for whom. */
export type EventOrigin = Pick<Infer<typeof EventRecord>, "request" | "source" | "principal">;

/** A dispatched event, before or after its distribution. */
export interface Event extends Omit<Infer<typeof NewEvent>, "data">, EventOrigin {
  /** Starts with `e`. */
  readonly id: string;
  /** The dispatched data as JSON, byte for byte what subscribers get. */
  readonly json: string;
  readonly createdAtMs: number;
}

export interface DeclaredEvent
  extends Pick<Infer<typeof DeclaredEventRecord>, "name" | "description" | "example"> {
  /** The scopes that a subscriber needs, all of them. */
  readonly scope: readonly string[];
  /** The shape of its data; undefined allows any JSON. */
  readonly data?: Shape<unknown> | undefined;
}

/** The prefix of the service's own events. Nobody else dispatches them; they need `backend`. */
export const OWN_PREFIX = "gatepost.";

export const EVENT_STATUSES = ["pending", "distributed"] as const;

const NAME = /^[A-Za-z0-9._:-]{1,128}$/;
const NAME_ERROR = "Must be 1 to 128 of A-Z a-z 0-9 . _ : -.";

export const EVENT_NAME = matching(NAME, NAME_ERROR);

export const PRINCIPAL_ID = matching(
  /^[uax][0-9a-z]{8,63}$/,
  "Must be the id of a user, an app or a principal.",
);

/** Returns why modules and operators may not dispatch an event of this name, if they may not. */
export const checkDispatchableName: Check = (name) => {
  if (name.startsWith(OWN_PREFIX)) return `Must not start with ${OWN_PREFIX}`;
  return NAME.test(name) ? undefined : NAME_ERROR;
};

/** An event's key. It is well-formed Unicode, or different keys could become equal when stored. */
const KEY = text(
  (key) => /^\P{Surrogate}{1,256}$/u.test(key) ? undefined : "Must be 1 to 256 Unicode characters.",
  { minLength: 1, maxLength: 256 },
);

/** Any JSON value; it is parsed to the text that callbacks send. */
const DATA: Shape<string> = {
  ...shown<string>({}),
  parse(value, report) {
    try {
      return encodeJson(value);
    } catch {
      report("Has a number that cannot be represented exactly."); // not exact as a double
      return "";
    }
  },
};

export const NewEvent = named("NewEvent", object({
  name: described(`Does not begin with ${OWN_PREFIX}`, text(checkDispatchableName, {
    pattern: NAME.source,
    not: { pattern: `^${OWN_PREFIX.replace(".", "[.]")}` },
  })),
  data: described("Any JSON: the body of every callback.", DATA),
  subject: optional(
    described("The only principal whose subscriptions get it: an id or a client_id.", PRINCIPAL_ID),
  ),
  key: optional(described("Of events with the same name and key only the first is stored.", KEY)),
}));

/** The scopes of an event in JSON. */
const NEEDED = optional(described("Scopes that a subscriber needs, separated by spaces.", TEXT));

/** An event in lists, without its data. */
export const EventRecord = named("Event", record({
  id: idOf("e"),
  name: EVENT_NAME,
  status: oneOf(...EVENT_STATUSES),
  subject: optional(PRINCIPAL_ID),
  scope: NEEDED,
  request: optional(described("The X-Request-Id of the request that dispatched it.", TEXT)),
  source: optional(described("The route or cronjob that dispatched it, or backend, or cli.", TEXT)),
  principal: optional(described("The caller of that request.", TEXT)),
  created_at: TIME,
}));

export type EventSummary = FieldsOf<Infer<typeof EventRecord>>;

/** A declared event as its possible subscribers see it. */
export const DeclaredEventRecord = named("DeclaredEvent", record({
  name: EVENT_NAME,
  description: TEXT,
  scope: NEEDED,
  schema: optional(described("JSON Schema of its data.", shown<object>({ type: "object" }))),
  example: optional(described("An example of its data.", ANYTHING)),
}));
