import { GRANT_TYPES } from "../../oauth/grant_type.ts";
import {
  COUNT,
  described,
  FLAG,
  id,
  list,
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

const SCOPES = list({ type: "string", minLength: 1, maxLength: 64 });
const GRANTS = list(word(...GRANT_TYPES));
const APP_NAME = { type: "string", minLength: 1, maxLength: 100 };
const USERNAME = { type: "string", pattern: "^[A-Za-z0-9._@+-]{1,64}$" };
const PASSWORD = described("8 to 1,024 bytes.", { type: "string", format: "password" });
const STATUS = word("active", "disabled");
const REDIRECT_URIS = described(
  "One of these exactly; null: any at or below the url.",
  nullable({ ...list(URI), minItems: 1 }),
);
const APP_SECRET = described("Shown here only.", TEXT);

/** What administration and the system's own endpoints take and answer. */
export const BACKEND_SCHEMAS: Schemas = {
  NewApp: strictObject({
    name: APP_NAME,
    url: described("Every redirect URI is at or below it.", URI),
    "type?": word("confidential", "public"),
    "scopes?": SCOPES,
    "grants?": GRANTS,
    "redirect_uris?": REDIRECT_URIS,
    "trusted?": described("Needs no consent of the user.", FLAG),
    "resource_server?": described("May introspect every token.", FLAG),
  }),
  AppChange: strictObject({
    "name?": APP_NAME,
    "url?": URI,
    "scopes?": SCOPES,
    "grants?": GRANTS,
    "redirect_uris?": REDIRECT_URIS,
    "trusted?": FLAG,
    "resource_server?": FLAG,
    "status?": STATUS,
  }),
  App: object({
    client_id: id("a"),
    name: APP_NAME,
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
  NewUser: strictObject({ username: USERNAME, password: PASSWORD, "scopes?": SCOPES }),
  UserChange: strictObject({ "password?": PASSWORD, "scopes?": SCOPES, "status?": STATUS }),
  User: object({
    id: id("u"),
    username: USERNAME,
    scopes: SCOPES,
    status: STATUS,
    created_at: TIME,
  }),
  UserPage: pageOf("User"),
  Grant: object({
    id: id("g"),
    user: nullable(id("u")),
    app: described("A client_id, or login."),
    type: word(...GRANT_TYPES, "login"),
    scopes: SCOPES,
    status: word("active", "expired", "revoked"),
    created_at: TIME,
    expires_at: TIME,
    "revoked_at?": TIME,
  }),
  GrantPage: pageOf("Grant"),
  Revocation: strictObject({ "user?": id("u"), "app?": TEXT }, { minProperties: 1 }),
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
        database: word("ok", "unavailable"),
        distributor: word("on", "off", "stuck"),
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
