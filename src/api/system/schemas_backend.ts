import { APP_NAME, MAX_APP_NAME_LENGTH } from "../../oauth/app.ts";
import { GRANT_TYPES } from "../../oauth/grant_type.ts";
import { LOGIN_APP } from "../../oauth/principal.ts";
import { MAX_LENGTH } from "../../oauth/redirect_uri.ts";
import { SCOPE_NAME } from "../../oauth/scope.ts";
import { PASSWORD_BYTES } from "../../base/password.ts";
import { USERNAME } from "../../oauth/user.ts";
import {
  COUNT,
  described,
  FLAG,
  givenList,
  id,
  list,
  matching,
  nullable,
  object,
  pageOf,
  ref,
  type Schemas,
  strictObject,
  TEXT,
  TIME,
  URI,
  withMembers,
  word,
} from "./json_schema.ts";

const SCOPES = givenList(matching(SCOPE_NAME));
const GRANTS = givenList(word(...GRANT_TYPES));
const NAME = { ...matching(APP_NAME), maxLength: MAX_APP_NAME_LENGTH };
const APP_URL = { ...URI, pattern: "^https?://[^?#]+$", maxLength: MAX_LENGTH };
const REDIRECT_URIS = described(
  "One of these exactly, each at or below the url; null: any at or below it.",
  nullable({
    ...givenList({ ...URI, pattern: "^https?://[^#]+$", maxLength: MAX_LENGTH }),
    minItems: 1,
  }),
);
const PASSWORD = described("Its length is that of its bytes as UTF-8.", {
  type: "string",
  format: "password",
  minLength: PASSWORD_BYTES.min,
  maxLength: PASSWORD_BYTES.max,
});
/** What names an app, the login endpoint among them. */
export const APP_OR_LOGIN = described(`A client_id, or ${LOGIN_APP}.`, {
  anyOf: [id("a"), { const: LOGIN_APP }],
});
const STATUS = word("active", "disabled");
const APP_SECRET = described("Shown here only.", TEXT);

/** What administration and the system's own endpoints take and answer. */
export const BACKEND_SCHEMAS: Schemas = {
  NewApp: strictObject({
    name: NAME,
    url: described("Every redirect URI is at or below it.", APP_URL),
    "type?": word("confidential", "public"),
    "scopes?": SCOPES,
    "grants?": GRANTS,
    "redirect_uris?": REDIRECT_URIS,
    "trusted?": described("Needs no consent of the user.", FLAG),
    "resource_server?": described("May introspect every token.", FLAG),
  }),
  AppChange: strictObject({
    "name?": NAME,
    "url?": APP_URL,
    "scopes?": SCOPES,
    "grants?": GRANTS,
    "redirect_uris?": REDIRECT_URIS,
    "trusted?": FLAG,
    "resource_server?": FLAG,
    "status?": STATUS,
  }),
  App: object({
    client_id: id("a"),
    name: NAME,
    url: URI,
    type: word("confidential", "public"),
    scopes: SCOPES,
    grants: GRANTS,
    redirect_uris: list(URI),
    redirect_rule: described(
      "A redirect URI is listed, or lies at or below the url.",
      word("listed", "prefix"),
    ),
    trusted: FLAG,
    resource_server: FLAG,
    status: STATUS,
    created_at: TIME,
  }),
  AppWithSecret: withMembers("App", { "client_secret?": APP_SECRET }),
  AppPage: pageOf("App"),
  NewAppSecret: strictObject({
    "revoke?": described("The old secret is good no more, instead of for another day.", FLAG),
  }),
  AppSecret: object({ client_id: id("a"), client_secret: APP_SECRET }),
  NewUser: strictObject({ username: matching(USERNAME), password: PASSWORD, "scopes?": SCOPES }),
  UserChange: strictObject({ "password?": PASSWORD, "scopes?": SCOPES, "status?": STATUS }),
  User: object({
    id: id("u"),
    username: matching(USERNAME),
    scopes: SCOPES,
    status: STATUS,
    created_at: TIME,
  }),
  UserPage: pageOf("User"),
  Grant: object({
    id: id("g"),
    user: nullable(id("u")),
    app: APP_OR_LOGIN,
    type: word(...GRANT_TYPES, "login"),
    scopes: SCOPES,
    status: word("active", "expired", "revoked"),
    created_at: TIME,
    expires_at: TIME,
    "revoked_at?": TIME,
  }),
  GrantPage: pageOf("Grant"),
  Revocation: strictObject({ "user?": id("u"), "app?": APP_OR_LOGIN }, { minProperties: 1 }),
  NewKey: strictObject({
    "at_once?": described("It signs at once, instead of in 10 minutes: for leaks.", FLAG),
  }),
  Key: object({
    kid: TEXT,
    alg: word("ES256", "RS256", "EdDSA"),
    status: word("pending", "signing", "retired"),
    created_at: TIME,
    signs_from: TIME,
    published_until: nullable(TIME),
    jwk: ref("Jwk"),
  }),
  KeyPage: pageOf("Key"),
  Cronjob: object({
    name: TEXT,
    every: described("A duration such as 5m."),
    status: word("running", "waiting"),
    last_run: nullable(TIME),
    duration_ms: nullable({ type: "number", minimum: 0 }),
    error: nullable(TEXT),
    next_run: TIME,
  }),
  CronjobPage: pageOf("Cronjob"),
  CronjobName: object({ name: TEXT }),
  AuditEntry: object({
    id: id("t"),
    time: TIME,
    actor: TEXT,
    action: TEXT,
    target: TEXT,
    address: nullable(TEXT),
    app: described("The app that acted for the actor, where one did.", nullable(id("a"))),
  }),
  AuditPage: pageOf("AuditEntry"),
  Health: object({ status: { const: "ok" } }),
  Readiness: object({
    status: word("ready", "unavailable"),
    "parts?": described(
      "For the metrics token or scope backend alone.",
      object({
        database: word("ok", "locked", "read_only", "full", "replaced", "failing", "unavailable"),
        distributor: word("on", "off", "stuck"),
        callbacks: described("ok, or the code of what the process lacks to send them."),
        backlog: nullable(COUNT),
        oldest_pending_age_seconds: nullable({ type: "number", minimum: 0 }),
      }),
    ),
  }),
  About: object({ name: { const: "Gatepost" }, version: TEXT, revision: TEXT }),
  OpenApi: object({
    openapi: TEXT,
    info: { type: "object" },
    servers: list({ type: "object" }),
    tags: list({ type: "object" }),
    paths: { type: "object" },
    webhooks: { type: "object" },
    components: { type: "object" },
  }),
};
