import { type Form, parseForm } from "../../base/form.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { CODE_CHALLENGE } from "../../oauth/pkce.ts";
import { lacksRedirectUris, needsPkce } from "../../oauth/profile.ts";
import { checkRedirectUri } from "../../oauth/redirect_uri.ts";
import { appAt, type Resource } from "../../oauth/resource.ts";
import { checkAppScopes } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { findApp } from "../../store/apps.ts";
import type { ErrorPageInput } from "../pages/error_page.ts";
import { readResource, readScope } from "./oauth_form.ts";

/** An active app and a redirect URI of it: where the outcome of a request may go. */
export interface AuthorizeTarget {
  /** The whole request. */
  readonly form: Form;
  readonly app: App;
  readonly redirectUri: string;
}

/** A valid authorization request (RFC 6749 §4.1.1, RFC 7636 §4.3). */
export interface AuthorizeRequest extends AuthorizeTarget {
  /** The scopes asked for by name; each is allowed to the app. */
  readonly requestedScopes: readonly string[];
  readonly challenge: string | null;
  /** What the tokens are for; null: this service. */
  readonly resource: Resource | null;
}

/**
 * Finds where the outcome of an authorization request goes, or why that is not known: then the user
 * alone gets the error (RFC 6749 §4.1.2.1).
 */
export async function findTarget(
  query: string,
  { config: { profile }, database }: Pick<Services, "config" | "database">,
): Promise<AuthorizeTarget | Pick<ErrorPageInput, "detail" | "facts">> {
  const form = parseForm(query);
  if (!form) return { detail: "The query is not well-formed." };
  const clientId = form.get("client_id");
  if (clientId === undefined) return { detail: "client_id is missing or repeated." };
  const app = await findApp(database, clientId);
  if (app?.status !== "active") return { detail: "client_id names no active app." };
  if (lacksRedirectUris(app, profile)) {
    const detail = `The app lists no redirect_uris, as profile ${profile} of this service demands.`;
    return { detail, facts: [["App", app.name]] };
  }
  const redirectUri = form.get("redirect_uri");
  if (redirectUri === undefined) return { detail: "redirect_uri is missing or repeated." };
  if (checkRedirectUri(redirectUri, app)) return { form, app, redirectUri };
  return {
    detail: app.redirectUris.length > 0 && !app.redirectUris.includes(redirectUri)
      ? "redirect_uri is not one of the app's redirect_uris."
      : `redirect_uri is not at or below ${app.url}, in canonical form.`,
    facts: [["App", app.name], ["redirect_uri", redirectUri]],
  };
}

/** Reads the rest of a request; throws OAuthError, which the app gets at its redirect URI. */
export async function readAuthorizeRequest(
  target: AuthorizeTarget,
  services: Pick<Services, "config" | "database" | "issuer">,
): Promise<AuthorizeRequest> {
  const { form } = target;
  const { profile } = services.config;
  if (form.duplicates.some((name) => name !== "resource")) {
    throw new OAuthError("invalid_request", "A parameter is repeated.");
  }
  if ((form.get("response_type") ?? "code") !== "code") {
    throw new OAuthError("unsupported_response_type", "The only response_type is code.");
  }
  if ((form.get("response_mode") ?? "query") !== "query") {
    throw new OAuthError("invalid_request", "The only response_mode is query.");
  }
  if (!target.app.grants.includes("authorization_code")) {
    throw new OAuthError("unauthorized_client", "The app may not use grant authorization_code.");
  }
  const resource = await readResource(form, services) ?? null;
  const requestedScopes = readScope(form);
  const app = appAt(target.app, resource, requestedScopes);
  const challenge = readChallenge(form, needsPkce(app, profile));
  checkAppScopes(requestedScopes, app.scopes);
  return { ...target, app, requestedScopes, challenge, resource };
}

/** PKCE with S256 only. */
function readChallenge(form: Form, isNeeded: boolean): string | null {
  const challenge = form.get("code_challenge");
  const method = form.get("code_challenge_method");
  if (challenge === undefined) {
    if (method !== undefined) {
      throw new OAuthError("invalid_request", "code_challenge_method has no code_challenge.");
    }
    if (isNeeded) {
      throw new OAuthError("invalid_request", "This app must send a code_challenge (PKCE).");
    }
    return null;
  }
  if (method !== "S256") {
    throw new OAuthError("invalid_request", "The only code_challenge_method is S256.");
  }
  if (!CODE_CHALLENGE.test(challenge)) {
    throw new OAuthError("invalid_request", "The code_challenge is not an S256 challenge.");
  }
  return challenge;
}
