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

/** Null chooses the weaker prefix rule; an empty list is refused, so that nobody does by chance. */
const REDIRECT_URIS = described(
  "The only redirect URIs, each at or below the url; null allows every URI at or below the url.",
  nullable(refined(listOf(REDIRECT_URI), (uris, report) => {
    if (uris.length > 0) return;
    report("Must not be empty; null allows every URI at or below the url.");
  }, { minItems: 1 })),
);

const KEYS = refined(listOf(PUBLIC_JWK), (keys, report) => {
  if (keys.length === 0 || keys.length > 5) report("Must be 1 to 5 keys.");
  keys.forEach(({ kid }, at) => {
    const isFirst = keys.findIndex((key) => key.kid === kid) === at;
    if (kid !== undefined && !isFirst) report("Must not be the kid of another key.", `/${at}/kid`);
  });
}, { minItems: 1, maxItems: 5 });

/** The optional members of a new app. */
const SETTINGS = {
  scopes: SCOPES,
  grants: listOf(oneOf(...GRANT_TYPES)),
  redirect_uris: REDIRECT_URIS,
  trusted: described("Gets scopes without the user's consent.", FLAG),
  resource_server: described("May introspect the tokens of every app.", FLAG),
  rate: RATE,
  require_pkce: described("Must send a code_challenge (PKCE), as public apps must.", FLAG),
  jwks: described(
    "The public keys by which the app authenticates (private_key_jwt), instead of a secret.",
    nullable(record({ keys: KEYS })),
  ),
  owner: described(
    "The user who may change its name, its addresses and its secret.",
    nullable(idOf("u")),
  ),
};

/** RFC 6749 §4.4: only confidential apps may use client credentials. */
function usualGrants(type: App["type"]): GrantType[] {
  const ofUsers = ["authorization_code", "refresh_token"] as const;
  return type === "public" ? [...ofUsers] : [...ofUsers, "client_credentials"];
}

/** The default grants of an app, in words. */
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

/** A change of an app; absent members stay as they are. */
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
    "Whether redirect URIs must be listed, or only lie at or below the url.",
    oneOf("listed", "prefix"),
  ),
  metadata_url: described(
    "The URL of the document that describes the app; the app sends this URL as its client_id.",
    nullable(URI),
  ),
  old_secret_until: optional(described("When the previous secret expires or expired.", TIME)),
  status: ACCOUNT_STATUS,
  created_at: TIME,
}));

/** A new app, with its secret if it is confidential. */
export const AppWithSecret = named("AppWithSecret", withMembers(AppRecord, {
  client_secret: optional(SECRET),
}));

export const NewAppSecret = named("NewAppSecret", object({
  revoke: optional(described("Ends the old secret at once, instead of in a day.", FLAG)),
}));

export const AppSecret = named("AppSecret", record({
  client_id: AppRecord.members.client_id,
  client_secret: SECRET,
}));

/** An OAuth client (RFC 6749 §2), without the hash of its secret, which stays in the store. */
export interface App extends
  Omit<FieldsOf<Infer<typeof AppRecord>>, "clientId" | "redirectRule" | "jwks" | "metadataUrl"> {
  /** The `client_id`; of an app with a `metadataUrl`, that URL is the `client_id` on the wire. */
  readonly id: string;
  /** The keys by which the app authenticates instead of a secret, if there are any. */
  readonly jwks: readonly PublicJwk[];
  /** The URL of the document that describes the app, if one does. */
  readonly metadataUrl?: string | null | undefined;
}

const toRecord = recordOf(AppRecord);

/** An app in JSON, without secrets. */
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

/** Returns the new app; throws Problem 400 as `changeApp` does. */
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

/** Returns the changed app; throws Problem 400 that lists all settings that contradict others. */
export function changeApp(app: App, change: Infer<typeof AppChange>, profile?: Profile): App {
  if (app.metadataUrl) {
    const { status, rate, ...others } = change;
    const detail = "Comes from the app's metadata document and cannot be set here.";
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
      refuse("/resource_server", "A public app cannot authenticate, so it cannot introspect.");
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
