import { idOf } from "../base/id.ts";
import { type FieldsOf, recordOf } from "../base/fields.ts";
import { described, type Infer, named, object, record } from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import type { App } from "./app.ts";
import { OAuthError } from "./errors.ts";
import { parseCanonical, PLAIN_URL } from "./redirect_uri.ts";
import { SCOPES } from "./scope.ts";

const CHANGEABLE = { scopes: described("The only scopes that its tokens may have.", SCOPES) };
const MEMBERS = { url: described("The aud of its tokens.", PLAIN_URL), ...CHANGEABLE };

export const NewResource = named("NewResource", object(MEMBERS));

export const ResourceChange = named("ResourceChange", object(CHANGEABLE));

/** A resource as the backend shows it. */
export const ResourceRecord =
  named("Resource", record({ id: idOf("p"), ...MEMBERS, created_at: TIME }));

/** A service beside this one for which tokens are issued (RFC 8707); it checks them by itself. */
export type Resource = FieldsOf<Infer<typeof ResourceRecord>>;

export const toResourceRecord = recordOf(ResourceRecord);

/** Whether a `resource` is this service: its base URL or a canonical URL below it, no query. */
export function isOwnResource(resource: string, issuer: string): boolean {
  const isPlain = parseCanonical(resource) !== undefined && !resource.includes("?");
  return isPlain && `${resource}/`.startsWith(`${issuer}/`);
}

/** What tokens are for, where that is not this service. */
export interface Target {
  readonly resource?: Resource;
}

/**
 * The app as it is at a resource: with those of its scopes that tokens for it may carry. Throws
 * OAuthError `invalid_scope` where another is asked for.
 */
export function appAt(
  app: App,
  resource: Resource | null | undefined,
  requested: readonly string[] = [],
): App & Target {
  if (!resource) return app;
  const missing = requested.find((name) => !resource.scopes.includes(name));
  if (missing !== undefined) {
    throw new OAuthError("invalid_scope", `The resource does not have scope ${missing}.`);
  }
  const scopes = app.scopes.filter((name) => resource.scopes.includes(name));
  return { ...app, scopes, resource };
}
