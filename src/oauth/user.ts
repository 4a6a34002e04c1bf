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

/** Returns what is wrong with a password, which must have 8 to 1,024 bytes of UTF-8. */
export const checkPassword: Check = (password) => {
  const bytes = Buffer.byteLength(password);
  return bytes >= min && bytes <= max ? undefined : `Must be ${min} to ${max} bytes long.`;
};

const PASSWORD = described(
  `${min} to ${max} bytes of UTF-8.`,
  // JSON Schema counts characters, of which a password has at most as many as bytes.
  text(checkPassword, { format: "password", minLength: min, maxLength: max }),
);

export const ACCOUNT_STATUS = oneOf("active", "disabled");

export const RATE = described(
  "The rate limit, such as 100/1m, instead of GATEPOST_RATE_LIMIT.",
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

/** A change of a user; absent members stay as they are. */
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

/** A browser in which a user has logged in, as JSON. */
export const SessionRecord = named("Session", record({
  id: idOf("b"),
  address: described("The client address at the login.", nullable(TEXT)),
  agent: described("The browser's User-Agent.", nullable(TEXT)),
  created_at: TIME,
  seen_at: described("The time of the last request, to within five minutes.", TIME),
  current: optional(described("Whether this request carried the session's cookie.", FLAG)),
}));

export type Session = FieldsOf<Infer<typeof SessionRecord>> & { readonly untilMs: number };

/** How a password was given out that this service made and its user has yet to replace. */
export type GivenPassword = "one-time" | "printed";

export const toUserRecord = recordOf(UserRecord);
