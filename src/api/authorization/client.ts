import type { HttpRequest } from "../../base/http_message.ts";
import type { Form } from "../../base/form.ts";
import { tooMany } from "../../base/problem.ts";
import { equalBytes, randomBytes, sha256 } from "../../base/secret.ts";
import type { App } from "../../oauth/app.ts";
import { verifyAssertion } from "../../oauth/client_assertion.ts";
import { clientAuthFailed, parseClientAuth } from "../../oauth/client_auth.ts";
import { isDocumentUrl } from "../../oauth/client_metadata.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { Services } from "../../services.ts";
import type { AppWithSecrets } from "../../store/apps.ts";
import { ANONYMOUS, FAILED_AUTHENTICATION, UNKNOWN } from "../../store/audit.ts";
import { useAssertion } from "../../store/client_assertions.ts";
import { throttleAddress } from "../../http/client_address.ts";
import { createThrottle } from "../../base/throttle.ts";

/** Finds and authenticates the app that sends a request. */
export type ClientAuthenticator = ReturnType<typeof createClientAuthenticator>;

const NO_SECRET = randomBytes(32); // matches nothing

/**
 * Makes the authentication of apps. Secrets have 256 bits, so nobody guesses them even without the
 * throttle. Past its limit, failures of an address get 429, but the right secret is still accepted:
 * nobody can lock out an app that shares the address.
 */
export function createClientAuthenticator(
  { accounts, config: { clientMetadata }, database, failures, issuer, now }:
    & Pick<Services, "accounts" | "database" | "failures" | "issuer" | "now">
    & { readonly config: Pick<Services["config"], "clientMetadata"> },
) {
  const throttle = createThrottle({ limit: 50, windowMs: 15 * 60_000, now });

  /** Counts a failure; returns the failure, or Problem 429 in its place. */
  function countFailure(failure: OAuthError, address: string, app: App | undefined): Error {
    const from = throttleAddress(address);
    const waitMs = throttle.waitMs(from);
    if (waitMs > 0) return tooMany("throttled", "Too many failures from this address.", waitMs);
    throttle.fail(from);
    const target = app?.id ?? UNKNOWN;
    failures.record(from, { actor: ANONYMOUS, action: FAILED_AUTHENTICATION, target, address });
    return failure;
  }

  /** Whether an app is active, and the credentials prove that it sent the request. */
  async function areCredentialsValid(
    app: AppWithSecrets | undefined,
    { clientId, secrets, assertion }: ReturnType<typeof parseClientAuth>,
  ): Promise<boolean> {
    const isAccepted = !app?.metadataUrl || isDocumentUrl(app.metadataUrl, clientMetadata);
    const isUsable = isAccepted && app?.status === "active";
    const proof = assertion && app && verifyAssertion(assertion, app, issuer, now());
    // A refused assertion stays unused: another process may have just allowed the app.
    const isValid = assertion ? isUsable && proof && await useAssertion(database, clientId, proof)
      : app?.type === "public" ? secrets.length === 0
      : hasSecret(app, secrets, now());
    return Boolean(isValid) && isUsable;
  }

  /** Returns the app. Throws OAuthError (RFC 6749 §2.3, §5.2), the same whatever is wrong. */
  async function authenticate(request: HttpRequest, form: Form): Promise<App> {
    let app: AppWithSecrets | undefined;
    try {
      const credentials = parseClientAuth(request.headers.authorization, form);
      for (let tries = 1; ; tries++) {
        const seen = accounts.changes();
        app = await accounts.findClient(credentials.clientId);
        if (await areCredentialsValid(app, credentials) && app) return app;
        if (tries === 2 || !await accounts.hasChanged(seen)) {
          throw clientAuthFailed(credentials.assertion ? "assertion" : "secret");
        }
      }
    } catch (error) {
      const isFailure = error instanceof OAuthError && error.status === 401;
      throw isFailure ? countFailure(error, request.address, app) : error;
    }
  }

  return {
    authenticate,
    /**
     * Authenticates the app and returns the result of `work`. If `work` returns undefined or says
     * that the app may not do this, and accounts have just changed, it runs again with new data.
     */
    async serve<Result>(
      request: HttpRequest,
      form: Form,
      work: (app: App) => Promise<Result>,
    ): Promise<Result> {
      const seen = accounts.changes();
      const app = await authenticate(request, form);
      try {
        const result = await work(app);
        if (result !== undefined || !await accounts.hasChanged(seen)) return result;
      } catch (error) {
        const isOfApp = error instanceof OAuthError &&
          (error.code === "unauthorized_client" || error.code === "invalid_scope");
        if (!isOfApp || !await accounts.hasChanged(seen)) throw error;
      }
      const current = await accounts.findClient(app.metadataUrl ?? app.id);
      if (current?.status !== "active") throw clientAuthFailed();
      return work(current);
    },
  };
}

/** Compares all given and stored secrets, even of an unknown app, so that the time says nothing. */
function hasSecret(app: AppWithSecrets | undefined, secrets: readonly string[], nowMs: number) {
  const old = (app?.oldSecretUntilMs ?? 0) > nowMs ? app?.oldSecret : undefined;
  const stored = [app?.secret ?? NO_SECRET, old ?? NO_SECRET];
  const given = secrets.map(sha256);
  return given.flatMap((hash) => stored.map((secret) => equalBytes(hash, secret))).includes(true);
}
