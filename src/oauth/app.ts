import { type FieldsOf, recordOf, toFields } from "../base/fields.ts";
import { idOf } from "../base/id.ts";
import { PUBLIC_JWK, type PublicJwk } from "../base/jwk.ts";
import { checkErrors, type FieldError } from "../base/problem.ts";
import {
  allOptional,
  described,
  FLAG,
  type Infer,
  listOf,
  manyOf,
  matching,
  named,
  nullable,
  object,
  oneOf,
  optional,
  record,
  refined,
  TEXT,
  URI,
  withChange,
  withMembers,
} from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import { GRANT_TYPES, type GrantType } from "./grant_type.ts";
import { CONSUMER_SCOPE } from "./principal.ts";
import { lacksRedirectUris, type Profile } from "./profile.ts";
import { APP_URL, checkRedirectUri, NOT_BELOW_URL, REDIRECT_URI } from "./redirect_uri.ts";
import { SCOPES } from "./scope.ts";
import { ACCOUNT_STATUS, RATE } from "./user.ts";

export const NAME = matching(
  /^(?!\s*$)[^\x00-\x1f\x7f-\x9f]{1,100}$/u,
  "Must be 1 to 100 characters, not only spaces, none of them a control character.",
);
const TYPE = oneOf("confidential", "public");
const SECRET = described("Shown here only.", TEXT);

/** Without a list the weaker prefix rule holds, so that must be said explicitly, by null. */
const REDIRECT_URIS = described(
  "One of these exactly, each at or below the url; null: any at or below it.",
  nullable(refined(listOf(REDIRECT_URI), (uris, report) => {
    if (uris.length > 0) return;
    report("Must not be empty; null lets any at or below the url pass.");
  }, { minItems: 1 })),
);

const KEYS = refined(listOf(PUBLIC_JWK), (keys, report) => {
  if (keys.length === 0 || keys.length > 5) report("Must be 1 to 5 keys.");
  keys.forEach(({ kid }, at) => {
    const isFirst = keys.findIndex((key) => key.kid === kid) === at;
    if (kid !== undefined && !isFirst) report("Must not be that of another key.", `/${at}/kid`);
  });
}, { minItems: 1, maxItems: 5 });

/** What a new app need not say. */
const SETTINGS = {
  scopes: SCOPES,
  grants: listOf(oneOf(...GRANT_TYPES)),
  redirect_uris: REDIRECT_URIS,
  trusted: described("Needs no consent of the user.", FLAG),
  resource_server: described("May introspect the tokens of every app.", FLAG),
  rate: RATE,
  require_pkce: described("Must send a code_challenge (PKCE), as public apps must.", FLAG),
  jwks: described(
    "The public keys that it proves itself with (private_key_jwt), in place of a secret.",
    nullable(record({ keys: KEYS })),
  ),
  owner: described(
    "The user who may change its name, its addresses and its secret.",
    nullable(idOf("u")),
  ),
};

/** RFC 6749 §4.4: client credentials are for confidential apps alone. */
function usualGrants(type: App["type"]): GrantType[] {
  const ofUsers = ["authorization_code", "refresh_token"] as const;
  return type === "public" ? [...ofUsers] : [...ofUsers, "client_credentials"];
}

/** The grants of an app where nothing is said of them, in words. */
export const USUAL_GRANTS =
  `${usualGrants("confidential").join(", ")}; for a public app all but the last`;

export const NewApp = named("NewApp", object({
  name: NAME,
  url: APP_URL,
  type: optional(TYPE, "confidential"),
  ...allOptional(SETTINGS),
  scopes: optional(SCOPES, [CONSUMER_SCOPE]),
  grants: optional(described(`Absent: ${USUAL_GRANTS}.`, SETTINGS.grants)),
}));

/** What of an app may change; a member that is absent stays as it is. */
export const AppChange = named("AppChange", object(allOptional({
  name: NAME,
  url: APP_URL,
  ...SETTINGS,
  status: ACCOUNT_STATUS,
})));

/** An app as the backend shows it. */
export const AppRecord = named("App", record({
  client_id: idOf("a"),
  name: NAME,
  url: URI,
  type: TYPE,
  ...SETTINGS,
  redirect_uris: manyOf(URI),
  redirect_rule: described(
    "A redirect URI is listed, or lies at or below the url.",
    oneOf("listed", "prefix"),
  ),
  metadata_url: described(
    "Where a document describes it; it sends this URL as its client_id.",
    nullable(URI),
  ),
  old_secret_until: optional(described("When the secret before this one ends, or ended.", TIME)),
  status: ACCOUNT_STATUS,
  created_at: TIME,
}));

/** A new app, with its secret where it has one. */
export const AppWithSecret = named("AppWithSecret", withMembers(AppRecord, {
  client_secret: optional(SECRET),
}));

export const NewAppSecret = named("NewAppSecret", object({
  revoke: optional(described("The old secret ends at once, instead of in a day.", FLAG)),
}));

export const AppSecret = named("AppSecret", record({
  client_id: AppRecord.members.client_id,
  client_secret: SECRET,
}));

/** An OAuth client (RFC 6749 §2); its secret's hash stays in the store. */
export interface App extends
  Omit<FieldsOf<Infer<typeof AppRecord>>, "clientId" | "redirectRule" | "jwks" | "metadataUrl"> {
  /** The `client_id`, unless it has a `metadataUrl`, which is its `client_id` on the wire then. */
  readonly id: string;
  /** Where there are any, they take the place of a secret. */
  readonly jwks: readonly PublicJwk[];
  /** Where a document describes it. */
  readonly metadataUrl?: string | null | undefined;
}

const toRecord = recordOf(AppRecord);

/** An app as JSON has it, without secrets. */
export function toAppRecord(app: App): Infer<typeof AppRecord> {
  return toRecord({
    ...app,
    clientId: app.id,
    redirectRule: app.redirectUris.length > 0 ? "listed" : "prefix",
    jwks: app.jwks.length > 0 ? { keys: app.jwks } : null,
    metadataUrl: app.metadataUrl ?? null,
    oldSecretUntilMs: app.oldSecretUntilMs || null, // 0: it has been revoked
  });
}

/** The app that is asked for; throws Problem 400 as `changeApp` does. */
export function newApp(
  wanted: Infer<typeof NewApp>,
  more: Pick<App, "id" | "createdAtMs">,
  profile?: Profile,
): App {
  const { name, url, type, scopes } = wanted;
  return changeApp({
    ...more,
    name,
    url,
    type,
    scopes,
    grants: usualGrants(type),
    redirectUris: [],
    trusted: false,
    resourceServer: false,
    rate: null,
    requirePkce: false,
    jwks: [],
    owner: null,
    status: "active",
  }, wanted, profile);
}

/** The app as it will be; throws Problem 400 that lists all that does not fit together in it. */
export function changeApp(app: App, change: Infer<typeof AppChange>, profile?: Profile): App {
  if (app.metadataUrl) {
    const { status, rate, ...others } = change;
    const detail = "Is what the app's metadata document says.";
    const errors = Object.keys(others).map((name) => ({ pointer: `/${name}`, detail }));
    checkErrors(errors, "body");
    return withChange(app, { status, rate });
  }
  const { grants, jwks, redirect_uris: uris } = change;
  const changed = withChange(app, {
    ...toFields(change),
    grants: grants && GRANT_TYPES.filter((grant) => grants.includes(grant)),
    redirectUris: uris === null ? [] : uris,
    jwks: jwks === null ? [] : jwks?.keys,
    oldSecretUntilMs: jwks ? 0 : undefined, // they take the secrets' place
  });
  const errors: FieldError[] = [];
  const refuse = (pointer: string, detail: string) => errors.push({ pointer, detail });
  if (app.type === "public") {
    const at = grants?.indexOf("client_credentials") ?? -1;
    if (at >= 0) refuse(`/grants/${at}`, "Is for confidential apps only (RFC 6749 §4.4).");
    if (changed.resourceServer) {
      refuse("/resource_server", "A public app cannot prove itself and so cannot introspect.");
    }
    if (jwks) refuse("/jwks", "Is for confidential apps only: a public one cannot keep a key.");
  }
  const rule = { url: changed.url, redirectUris: [] };
  uris?.forEach((uri, at) => {
    if (!checkRedirectUri(uri, rule)) refuse(`/redirect_uris/${at}`, NOT_BELOW_URL);
  });
  if (uris === undefined && !app.redirectUris.every((uri) => checkRedirectUri(uri, rule))) {
    refuse("/url", "The listed redirect_uris do not fit this url; send both.");
  }
  const needsUris = changed.status === "active" && changed.grants.includes("authorization_code");
  if (needsUris && lacksRedirectUris(changed, profile)) {
    refuse("/redirect_uris", `Is required for authorization_code by GATEPOST_PROFILE ${profile}.`);
  }
  checkErrors(errors, "body");
  return changed;
}
