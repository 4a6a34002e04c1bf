import type { Form } from "../../base/form.ts";
import { newId } from "../../base/id.ts";
import type { Sql } from "../../database/sql.ts";
import type { App } from "../../oauth/app.ts";
import { appOfDocument, isDocumentUrl } from "../../oauth/client_metadata.ts";
import { invalidRequest, OAuthError } from "../../oauth/errors.ts";
import { CODE_CHALLENGE } from "../../oauth/pkce.ts";
import { isOfBackend } from "../../oauth/principal.ts";
import { lacksRedirectUris, needsPkce } from "../../oauth/profile.ts";
import { checkRedirectUri, isListedRedirectUri } from "../../oauth/redirect_uri.ts";
import { appAt, type Target } from "../../oauth/resource.ts";
import { checkAppScopes } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { findClient, insertApp, updateApp } from "../../store/apps.ts";
import type { ErrorPageInput } from "../pages/error_page.ts";
import { checkRepeated, readResource, readScope } from "./oauth_form.ts";
import { checkAllowed } from "./token.ts";

/** An active app and one of its redirect URIs, to which the outcome of a request may be sent. */
export interface AuthorizeTarget {
  /** All parameters of the request. */
  readonly form: Form;
  readonly app: App;
  readonly redirectUri: string;
  /** The statements that store an app known by its document, as the document is now. */
  readonly registration?: readonly Sql[];
}

/** A valid authorization request (RFC 6749 §4.1.1, RFC 7636 §4.3). */
export interface AuthorizeRequest extends AuthorizeTarget {
  readonly app: App & Target;
  /** The scopes asked for by name; each is allowed to the app. */
  readonly requestedScopes: readonly string[];
  readonly challenge: string | null;
  /** How old the login may be (OpenID Connect Core §3.1.2.1); Infinity without max_age. */
  readonly maxAgeMs: number;
}

type DocumentServices = Pick<Services, "database" | "documents" | "issuer" | "now" | "scopes">;

/**
 * Finds the app and the redirect URI that get the outcome of an authorization request. If there are
 * none, returns the reason, which only the user sees (RFC 6749 §4.1.2.1).
 */
export async function findTarget(
  form: Form,
  address: string,
  services: DocumentServices & Pick<Services, "config" | "consoleApp">,
): Promise<AuthorizeTarget | Pick<ErrorPageInput, "detail" | "facts">> {
  const { config: { clientMetadata, profile }, consoleApp, database } = services;
  const clientId = form.get("client_id");
  if (clientId === undefined) return { detail: "client_id is missing or repeated." };
  const redirectUri = form.get("redirect_uri");
  if (redirectUri === undefined) return { detail: "redirect_uri is missing or repeated." };
  const app = clientId === consoleApp?.id ? consoleApp : await findClient(database, clientId);
  if (app?.status !== "disabled" && isDocumentUrl(clientId, clientMetadata)) {
    return findDocumentTarget(form, clientId, redirectUri, address, app, services);
  }
  if (app?.status !== "active" || app.metadataUrl) {
    return { detail: "client_id names no active app." };
  }
  if (lacksRedirectUris(app, profile)) {
    const detail = `The app lists no redirect_uris, but profile ${profile} requires them.`;
    return { detail, facts: [["App", app.name]] };
  }
  // The console's redirect URIs may be at two origins, and must match exactly.
  const isAllowed = app === consoleApp
    ? app.redirectUris.includes(redirectUri)
    : checkRedirectUri(redirectUri, app);
  if (isAllowed) return { form, app, redirectUri };
  return {
    detail: app.redirectUris.length > 0
      ? "redirect_uri is not one of the app's redirect_uris."
      : `redirect_uri is not at or below ${app.url}, in canonical form.`,
    facts: [["App", app.name], ["redirect_uri", redirectUri]],
  };
}

/** The same as `findTarget` for an app that is known by the document at its client_id. */
async function findDocumentTarget(
  form: Form,
  clientId: string,
  redirectUri: string,
  address: string,
  known: App | undefined,
  services: DocumentServices,
): Promise<AuthorizeTarget | Pick<ErrorPageInput, "detail" | "facts">> {
  const found = await services.documents.find(clientId, address);
  if ("reason" in found) {
    const detail = `The metadata document of the app is not accepted. ${found.reason}`;
    return { detail, facts: [["client_id", clientId]] };
  }
  if (!isListedRedirectUri(redirectUri, found.redirectUris)) {
    const detail = "redirect_uri is not one of those in the app's metadata document.";
    return { detail, facts: [["client_id", clientId], ["redirect_uri", redirectUri]] };
  }
  // An error of `resource` is for the app: readAuthorizeRequest throws it again.
  const resource = await readResource(form, services).catch(() => undefined);
  const all = new Set([...known?.scopes ?? [], ...services.scopes, ...resource?.scopes ?? []]);
  const scopes = [...all].filter((scope) => !isOfBackend(scope));
  const createdAtMs = services.now();
  const made = { id: newId("a", createdAtMs), createdAtMs, scopes };
  const app = appOfDocument(clientId, found, known, made);
  const registration = [known ? updateApp(known, app) : insertApp(app, undefined)];
  return { form, app, redirectUri, registration };
}

/** Reads the rest of a request; throws OAuthError, which the app gets at its redirect URI. */
export async function readAuthorizeRequest(
  target: AuthorizeTarget,
  services: Pick<Services, "config" | "database" | "issuer">,
): Promise<AuthorizeRequest> {
  const { form } = target;
  checkRepeated(form);
  if ((form.get("response_type") ?? "code") !== "code") {
    throw new OAuthError("unsupported_response_type", "The only response_type is code.");
  }
  if ((form.get("response_mode") ?? "query") !== "query") {
    throw invalidRequest("The only response_mode is query.");
  }
  checkAllowed(target.app, "authorization_code");
  const resource = await readResource(form, services);
  const requestedScopes = readScope(form);
  const app = appAt(target.app, resource, requestedScopes);
  const challenge = readChallenge(form, needsPkce(app, services.config.profile));
  checkAppScopes(requestedScopes, app);
  const seconds = form.get("max_age");
  if (/\D/.test(seconds ?? "")) {
    throw invalidRequest("The max_age is not a whole number of seconds.");
  }
  const maxAgeMs = seconds === undefined ? Infinity : Number(seconds) * 1000;
  return { ...target, app, requestedScopes, challenge, maxAgeMs };
}

/** PKCE with S256 only. */
function readChallenge(form: Form, isNeeded: boolean): string | null {
  const challenge = form.get("code_challenge");
  const method = form.get("code_challenge_method");
  if (challenge === undefined) {
    if (method !== undefined) throw invalidRequest("code_challenge_method has no code_challenge.");
    if (isNeeded) throw invalidRequest("This app must send a code_challenge (PKCE).");
    return null;
  }
  if (method !== "S256") throw invalidRequest("The only code_challenge_method is S256.");
  if (CODE_CHALLENGE.test(challenge)) return challenge;
  throw invalidRequest("The code_challenge is not an S256 challenge.");
}
