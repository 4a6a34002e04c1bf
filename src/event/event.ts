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

/** By what an event was dispatched. */
export type EventOrigin = Pick<Infer<typeof EventRecord>, "request" | "source" | "principal">;

/** An event that waits for, or has been through, its distribution. */
export interface Event extends Omit<Infer<typeof NewEvent>, "data">, EventOrigin {
  /** Starts with `e`. */
  readonly id: string;
  /** The dispatched data as JSON, byte for byte what subscribers get. */
  readonly json: string;
  readonly createdAtMs: number;
}

export interface DeclaredEvent
  extends Pick<Infer<typeof DeclaredEventRecord>, "name" | "description" | "example"> {
  /** All that are needed to subscribe to it. */
  readonly scope: readonly string[];
  /** What its data must be; undefined: any JSON. */
  readonly data?: Shape<unknown> | undefined;
}

/** The service's own events: nobody else dispatches them, and only scope `backend` gets them. */
export const OWN_PREFIX = "gatepost.";

export const EVENT_STATUSES = ["pending", "distributed"] as const;

const NAME = /^[A-Za-z0-9._:-]{1,128}$/;
const NAME_ERROR = "Must be 1 to 128 of A-Z a-z 0-9 . _ : -.";

export const EVENT_NAME = matching(NAME, NAME_ERROR);

export const PRINCIPAL_ID = matching(
  /^[uax][0-9a-z]{8,63}$/,
  "Must be the id of a user, an app or a principal.",
);

/** Says why neither code nor people may dispatch an event of this name. */
export const checkDispatchableName: Check = (name) => {
  if (name.startsWith(OWN_PREFIX)) return `Must not start with ${OWN_PREFIX}`;
  return NAME.test(name) ? undefined : NAME_ERROR;
};

/** An event's key: well-formed, so that no two become one when they are stored. */
const KEY = text(
  (key) => /^\P{Surrogate}{1,256}$/u.test(key) ? undefined : "Must be 1 to 256 Unicode characters.",
  { minLength: 1, maxLength: 256 },
);

/** Any JSON value; parsed, it is the text that callbacks have. */
const DATA: Shape<string> = {
  ...shown<string>({}),
  parse(value, report) {
    try {
      return encodeJson(value);
    } catch {
      report("Has a number that cannot be passed on as it is."); // past a double
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
    described("Whose subscriptions alone are meant, by id or client_id.", PRINCIPAL_ID),
  ),
  key: optional(described("Of all events of one name and key the first alone is stored.", KEY)),
}));

/** The scopes of an event, as JSON has them. */
const NEEDED = optional(described("What a subscriber needs: names separated by spaces.", TEXT));

/** An event as lists show it: without its data. */
export const EventRecord = named("Event", record({
  id: idOf("e"),
  name: EVENT_NAME,
  status: oneOf(...EVENT_STATUSES),
  subject: optional(PRINCIPAL_ID),
  scope: NEEDED,
  request: optional(described("The X-Request-Id of the request that dispatched it.", TEXT)),
  source: optional(described("The route or cronjob that did; else backend or cli.", TEXT)),
  principal: optional(described("Whose request that was.", TEXT)),
  created_at: TIME,
}));

export type EventSummary = FieldsOf<Infer<typeof EventRecord>>;

/** A declared event as those see it who may subscribe to it. */
export const DeclaredEventRecord = named("DeclaredEvent", record({
  name: EVENT_NAME,
  description: TEXT,
  scope: NEEDED,
  schema: optional(described("JSON Schema of its data.", shown<object>({ type: "object" }))),
  example: optional(described("Data of one.", ANYTHING)),
}));
