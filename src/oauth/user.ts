import { type FieldsOf, recordOf } from "../base/fields.ts";
import { idOf } from "../base/id.ts";
import { PASSWORD_BYTES } from "../base/password.ts";
import { parseRate, RATE_FORM, RATE_PATTERN } from "../base/rate.ts";
import {
  type Check,
  described,
  FLAG,
  type Infer,
  matching,
  named,
  nullable,
  object,
  oneOf,
  optional,
  record,
  TEXT,
  text,
} from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import { CONSUMER_SCOPE } from "./principal.ts";
import { SCOPES } from "./scope.ts";

const USERNAME = matching(/^[A-Za-z0-9._@+-]{1,64}$/, "Must be 1 to 64 of A-Z a-z 0-9 . _ @ + -.");

const { min, max } = PASSWORD_BYTES;

/** Says what is wrong with a password: 8 to 1,024 bytes of UTF-8. */
export const checkPassword: Check = (password) => {
  const bytes = Buffer.byteLength(password);
  return bytes >= min && bytes <= max ? undefined : `Must be ${min} to ${max} bytes long.`;
};

const PASSWORD = described(
  `${min} to ${max} bytes of UTF-8.`,
  // A schema counts characters, of which so many are never too few.
  text(checkPassword, { format: "password", minLength: min, maxLength: max }),
);

export const ACCOUNT_STATUS = oneOf("active", "disabled");

export const RATE = described(
  "How often it may call, such as 100/1m, in place of GATEPOST_RATE_LIMIT.",
  nullable(text((rate) => parseRate(rate) ? undefined : `Must be ${RATE_FORM}.`, {
    pattern: RATE_PATTERN.source,
  })),
);

export const NewUser = named("NewUser", object({
  username: USERNAME,
  password: PASSWORD,
  scopes: optional(SCOPES, [CONSUMER_SCOPE]),
  rate: optional(RATE),
}));

/** What of a user may change; a member that is absent stays as it is. */
export const UserChange = named("UserChange", object({
  password: optional(PASSWORD),
  scopes: optional(SCOPES),
  rate: optional(RATE),
  status: optional(ACCOUNT_STATUS),
}));

/** A user as the backend shows it. */
export const UserRecord = named("User", record({
  id: idOf("u"),
  username: USERNAME,
  scopes: SCOPES,
  rate: RATE,
  status: ACCOUNT_STATUS,
  created_at: TIME,
}));

/** Someone who logs in with a name and a password. */
export type User = FieldsOf<Infer<typeof UserRecord>>;

/** A browser in which a user has logged in, as it is shown. */
export const SessionRecord = named("Session", record({
  id: idOf("b"),
  address: described("From which it was begun.", nullable(TEXT)),
  agent: described("What the browser says that it is.", nullable(TEXT)),
  created_at: TIME,
  seen_at: described("To within five minutes.", TIME),
  current: optional(described("Whether this request came with its cookie.", FLAG)),
}));

export type Session = FieldsOf<Infer<typeof SessionRecord>> & { readonly untilMs: number };

/** How this service made a password that its user has yet to replace. */
export type GivenPassword = "one-time" | "printed";

export const toUserRecord = recordOf(UserRecord);
