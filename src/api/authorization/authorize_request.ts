import { type Form, parseForm } from "../../base/form.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { CODE_CHALLENGE } from "../../oauth/pkce.ts";
import { checkRedirectUri } from "../../oauth/redirect_uri.ts";
import { checkAppScopes } from "../../oauth/scope.ts";
import { checkResource, readScope } from "./oauth_form.ts";

/** A valid authorization request (RFC 6749 §4.1.1, RFC 7636 §4.3). */
export interface AuthorizeRequest {
  readonly app: App;
  readonly redirectUri: string;
  readonly state: string | undefined;
  /** The scopes asked for by name; each is allowed to the app. */
  readonly requestedScopes: readonly string[] | undefined;
  readonly challenge: string | undefined;
  /** Whom the app takes the user for, "" where it does not say. */
  readonly loginHint: string;
}

/** What a query to the authorize page turned out to be (RFC 6749 §4.1.2.1). */
export type AuthorizeOutcome =
  | { readonly kind: "request"; readonly request: AuthorizeRequest }
  /** The app gets the error, at its redirect URI. */
  | {
    readonly kind: "redirect";
    readonly redirectUri: string;
    readonly state: string | undefined;
    readonly error: OAuthError;
  }
  /** The redirect URI cannot be trusted, so the user alone gets the error. */
  | {
    readonly kind: "page";
    readonly detail: string;
    readonly facts?: readonly (readonly [name: string, text: string])[];
  };

/** Reads an authorization request; `findApp` finds active apps and others alike. */
export async function readAuthorizeRequest(
  query: string,
  findApp: (id: string) => Promise<App | undefined>,
  issuer: string,
): Promise<AuthorizeOutcome> {
  const form = parseForm(query);
  if (!form) return { kind: "page", detail: "The query is not well-formed." };
  const clientId = form.get("client_id");
  if (clientId === undefined) return { kind: "page", detail: "client_id is missing or repeated." };
  const app = await findApp(clientId);
  if (app?.status !== "active") return { kind: "page", detail: "client_id names no active app." };
  const redirectUri = form.get("redirect_uri");
  if (redirectUri === undefined) {
    return { kind: "page", detail: "redirect_uri is missing or repeated." };
  }
  if (!checkRedirectUri(redirectUri, app)) {
    return {
      kind: "page",
      detail: app.redirectUris.length > 0 && !app.redirectUris.includes(redirectUri)
        ? "redirect_uri is not one of the app's redirect_uris."
        : `redirect_uri is not at or below ${app.url}, in canonical form.`,
      facts: [["App", app.name], ["redirect_uri", redirectUri]],
    };
  }
  const state = form.get("state");
  const loginHint = form.get("login_hint") ?? "";
  try {
    const rest = readRest(form, app, issuer);
    return { kind: "request", request: { ...rest, app, redirectUri, state, loginHint } };
  } catch (error) {
    if (!(error instanceof OAuthError)) throw error;
    return { kind: "redirect", redirectUri, state, error };
  }
}

function readRest(
  form: Form,
  app: App,
  issuer: string,
): Pick<AuthorizeRequest, "requestedScopes" | "challenge"> {
  if (form.duplicates.some((name) => name !== "resource")) {
    throw new OAuthError("invalid_request", "A parameter is repeated.");
  }
  if ((form.get("response_type") ?? "code") !== "code") {
    throw new OAuthError("unsupported_response_type", "The only response_type is code.");
  }
  if ((form.get("response_mode") ?? "query") !== "query") {
    throw new OAuthError("invalid_request", "The only response_mode is query.");
  }
  if (!app.grants.includes("authorization_code")) {
    throw new OAuthError("unauthorized_client", "The app may not use grant authorization_code.");
  }
  checkResource(form, issuer);
  const challenge = readChallenge(form, app);
  const requestedScopes = readScope(form);
  checkAppScopes(requestedScopes ?? [], app.scopes);
  return { requestedScopes, challenge };
}

/** PKCE with S256 alone; a public app has nothing else to prove itself with (RFC 9700 §2.1.1). */
function readChallenge(form: Form, app: App): string | undefined {
  const challenge = form.get("code_challenge");
  const method = form.get("code_challenge_method");
  if (challenge === undefined) {
    if (method !== undefined) {
      throw new OAuthError("invalid_request", "code_challenge_method has no code_challenge.");
    }
    if (app.type === "public") {
      throw new OAuthError("invalid_request", "A public app must send a code_challenge (PKCE).");
    }
    return undefined;
  }
  if (method !== "S256") {
    throw new OAuthError("invalid_request", "The only code_challenge_method is S256.");
  }
  if (!CODE_CHALLENGE.test(challenge)) {
    throw new OAuthError("invalid_request", "The code_challenge is not an S256 challenge.");
  }
  return challenge;
}
