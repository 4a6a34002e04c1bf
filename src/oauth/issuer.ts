import { type FieldsOf, recordOf } from "../base/fields.ts";
import { idOf } from "../base/id.ts";
import {
  allOptional,
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
  refined,
  TEXT,
  text,
} from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import { isSecureUrl } from "./redirect_uri.ts";
import { SCOPES } from "./scope.ts";
import { ACCOUNT_STATUS } from "./user.ts";

const MAX_LENGTH = 2048;

/** An https URL (http on this machine alone) of this form. */
const urlOf = (form: RegExp, not: string) =>
  text((value) => {
    const url = form.test(value) ? URL.parse(value) : null;
    if (url && isSecureUrl(url) && url.username === "" && url.password === "") return undefined;
    return `Must be an https URL (http only on a loopback address) without ${not}.`;
  }, { format: "uri", maxLength: MAX_LENGTH });

/** RFC 8414 §2; compared byte for byte. */
const ISSUER = described("The issuer's URL, exactly as its tokens have it in iss.",
  urlOf(/^https?:\/\/[!-"$->@-[\]-~]{1,2000}$/, "credentials, query and fragment"));
const KEYS_URL = described("The URL of its keys; by default the one that its metadata names.",
  urlOf(/^https?:\/\/[!-"$-[\]-~]{1,2000}$/, "credentials and fragment"));
const AUDIENCE = described("The aud of its tokens; by default the base URL of this service.",
  matching(/^[\x21-\x7e]{1,2048}$/, "Must be printable ASCII."));
const ISSUER_SCOPES = described("The scopes that its tokens may grant here; others are ignored.",
  refined(SCOPES, (scopes, report) => {
    if (scopes.length === 0) report("Must name at least one scope.");
  }, { minItems: 1 }));
const SCOPE_CLAIM = described("The claim that holds the scopes.", oneOf("scope", "scp", "roles"));
const JWT_TYPE = described("Accepts typ JWT too, besides at+jwt (RFC 9068).", FLAG);

export const NewIssuer = named("NewIssuer", object({
  issuer: ISSUER,
  audience: optional(AUDIENCE),
  scopes: ISSUER_SCOPES,
  scope_claim: optional(SCOPE_CLAIM, "scope"),
  jwks_uri: optional(KEYS_URL),
  jwt_type: optional(JWT_TYPE, false),
}));

const SETTINGS = {
  audience: nullable(AUDIENCE),
  scopes: ISSUER_SCOPES,
  scope_claim: SCOPE_CLAIM,
  jwks_uri: nullable(KEYS_URL),
  jwt_type: JWT_TYPE,
  status: ACCOUNT_STATUS,
};

/** A change of an issuer; with `jwks_uri` null its metadata are read again. */
export const IssuerChange = named("IssuerChange", object(allOptional(SETTINGS)));

/** An issuer as the backend shows it. */
export const IssuerRecord = named("Issuer", record({
  id: idOf("i"),
  issuer: ISSUER,
  ...SETTINGS,
  jwks_uri: KEYS_URL,
  created_at: TIME,
}));

/** Another authorization server whose access tokens are accepted here. */
export type Issuer = FieldsOf<Infer<typeof IssuerRecord>>;

export const toIssuerRecord = recordOf(IssuerRecord);

export const PrincipalChange = named("PrincipalChange", object({ status: ACCOUNT_STATUS }));

/** A principal as the backend shows it; `subject` is the `sub` that its issuer gives it. */
export const PrincipalRecord = named("Principal", record({
  id: idOf("x"),
  issuer: idOf("i"),
  subject: TEXT,
  status: ACCOUNT_STATUS,
  created_at: TIME,
}));

/** The subject of another issuer's tokens; stored when its first token is presented. */
export type Principal = FieldsOf<Infer<typeof PrincipalRecord>>;

export const toPrincipalRecord = recordOf(PrincipalRecord);
