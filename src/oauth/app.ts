import { type Check, type Fields, openFields } from "../base/fields.ts";
import { type GrantType, GRANT_TYPES } from "./grant_type.ts";
import { CONSUMER_SCOPE } from "./principal.ts";
import { checkRedirectUri, isLoopbackHost, parseAppUrl } from "./redirect_uri.ts";
import { checkScopeName } from "./user.ts";

/** An OAuth client (RFC 6749 §2); its secret's hash stays in the store. */
export interface App {
  /** The `client_id`; starts with `a`. */
  readonly id: string;
  readonly name: string;
  readonly url: string;
  readonly type: "confidential" | "public";
  readonly scopes: readonly string[];
  readonly grants: readonly GrantType[];
  /** Where any are listed, a redirect URI must be one of them exactly. */
  readonly redirectUris: readonly string[];
  /** Needs no consent of the user. */
  readonly trusted: boolean;
  /** May introspect the tokens of every app. */
  readonly resourceServer: boolean;
  readonly status: "active" | "disabled";
  readonly createdAtMs: number;
  /** Grants made then or before have ended. */
  readonly notBeforeMs: number;
}

/** Tells whether any program on the user's device can pose as an app (RFC 8252 §8.6). */
export function isPosable({ type, url }: Pick<App, "type" | "url">): boolean {
  return type === "public" && isLoopbackHost(new URL(url).hostname);
}

/** What makes an app. */
export type NewApp = Omit<App, "id" | "status" | "createdAtMs" | "notBeforeMs">;

/** Reads the JSON that makes an app; throws Problem 400 with every fault. */
export function parseNewApp(value: unknown): NewApp {
  const fields = openFields(value);
  const type = fields.word("type", ["confidential", "public"]) ?? "confidential";
  const url = fields.requiredText("url", checkAppUrl);
  const app: NewApp = {
    name: fields.requiredText("name", checkName),
    url,
    type,
    scopes: fields.list("scopes", checkScopeName) ?? [CONSUMER_SCOPE],
    grants: readGrants(fields, type) ??
      GRANT_TYPES.filter((grant) => grant !== "password" && isGrantFor(type, grant)),
    redirectUris: readRedirectUris(fields, url) ?? [],
    trusted: fields.flag("trusted") ?? false,
    resourceServer: fields.flag("resource_server") ?? false,
  };
  checkResourceServer(fields, app);
  fields.finish("app");
  return app;
}

/**
 * Reads the JSON that changes an app, and answers with the app as it will be; its type is fixed.
 * Throws Problem 400 with every fault.
 */
export function parseAppChange(value: unknown, app: App): App {
  const fields = openFields(value);
  const url = fields.text("url", checkAppUrl) ?? app.url;
  const changed: App = {
    ...app,
    name: fields.text("name", checkName) ?? app.name,
    url,
    scopes: fields.list("scopes", checkScopeName) ?? app.scopes,
    grants: readGrants(fields, app.type) ?? app.grants,
    redirectUris: readRedirectUris(fields, url) ?? app.redirectUris,
    trusted: fields.flag("trusted") ?? app.trusted,
    resourceServer: fields.flag("resource_server") ?? app.resourceServer,
    status: fields.word("status", ["active", "disabled"]) ?? app.status,
  };
  checkResourceServer(fields, changed);
  if (!fields.has("redirect_uris") && !changed.redirectUris.every((uri) => isListable(uri, url))) {
    fields.report("url", "The listed redirect_uris do not fit this url; send both.");
  }
  fields.finish("change of an app");
  return changed;
}

function checkResourceServer(fields: Fields, { type, resourceServer }: NewApp): void {
  if (type === "confidential" || !resourceServer) return;
  fields.report("resource_server", "A public app cannot prove itself and so cannot introspect.");
}

/** What an app's name is, which has at most 100 characters besides. */
export const APP_NAME =
  /^[^\x00-\x1f\x7f-\x9f]*[^\s\x00-\x1f\x7f-\x9f][^\x00-\x1f\x7f-\x9f]*$/;
export const MAX_APP_NAME_LENGTH = 100;

const checkName: Check = (text) =>
  [...text].length <= MAX_APP_NAME_LENGTH && APP_NAME.test(text)
    ? undefined
    : "Must be 1 to 100 characters, not only spaces, none of them a control character.";

const checkAppUrl: Check = (text) =>
  parseAppUrl(text) !== undefined
    ? undefined
    : "Must be a canonical https URL (http only on localhost, 127.0.0.1 or [::1]), " +
      "without credentials, query and fragment.";

function readGrants(fields: Fields, type: App["type"]): GrantType[] | undefined {
  const given = fields.list("grants", (text) => {
    const grant = GRANT_TYPES.find((known) => known === text);
    if (grant === undefined) return `Must be one of: ${GRANT_TYPES.join(", ")}.`;
    return isGrantFor(type, grant) ? undefined : "Is for confidential apps only (RFC 6749 §4.4).";
  });
  return given && GRANT_TYPES.filter((grant) => given.includes(grant));
}

function isGrantFor(type: App["type"], grant: GrantType): boolean {
  return type === "confidential" || grant !== "client_credentials";
}

/** None listed lets the weaker prefix rule hold, so that is not said by the way. */
function readRedirectUris(fields: Fields, url: string): string[] | undefined {
  const given = fields.value("redirect_uris");
  if (given === null) return [];
  if (Array.isArray(given) && given.length === 0) {
    fields.report("redirect_uris", "Must not be empty; null lets any at or below the url pass.");
  }
  return fields.list(
    "redirect_uris",
    (text) => isListable(text, url) ? undefined : "Must lie at or below the app's url.",
  );
}

/** Beside a url that is wrong a URI is held against its own origin: its form still counts. */
function isListable(uri: string, url: string): boolean {
  const base = parseAppUrl(url) === undefined ? URL.parse(uri)?.origin : url;
  return base !== undefined && checkRedirectUri(uri, { url: base, redirectUris: [] });
}
