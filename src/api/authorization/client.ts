import type { HttpRequest } from "../../base/http_message.ts";
import type { Form } from "../../base/form.ts";
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

/** Finds and proves the app that sends a request. */
export type ClientAuthenticator = ReturnType<typeof createClientAuthenticator>;

const NO_SECRET = randomBytes(32); // matches nothing

/**
 * Makes the authentication of apps. Secrets have 256 bits, so the throttle is not what keeps them
 * from being guessed: beyond its limit the failures of an address get 429, and the right secret is
 * still accepted, so that nobody can lock out an app that shares the address.
 */
export function createClientAuthenticator(
  { accounts, config: { clientMetadata }, database, failures, issuer, now }:
    & Pick<Services, "accounts" | "database" | "failures" | "issuer" | "now">
    & { readonly config: Pick<Services["config"], "clientMetadata"> },
) {
  const throttle = createThrottle({ limit: 50, windowMs: 15 * 60_000, now });

  /** Counts a failure; returns it, or the 429 that takes its place. */
  function countFailure(failure: OAuthError, address: string, app: App | undefined): OAuthError {
    const from = throttleAddress(address);
    const waitMs = throttle.waitMs(from);
    if (waitMs > 0) {
      return new OAuthError("temporarily_unavailable", "Too many failures from this address.", {
        status: 429,
        headers: { "Retry-After": String(Math.ceil(waitMs / 1000)) },
      });
    }
    throttle.fail(from);
    const target = app?.id ?? UNKNOWN;
    failures.record(from, { actor: ANONYMOUS, action: FAILED_AUTHENTICATION, target, address });
    return failure;
  }

  return {
    /** The app; throws OAuthError (RFC 6749 §2.3, §5.2), the same one whatever did not fit. */
    async authenticate(request: HttpRequest, form: Form): Promise<App> {
      let app: AppWithSecrets | undefined;
      try {
        const { authorization } = request.headers;
        const { clientId, secrets, assertion } = parseClientAuth(authorization, form);
        app = await accounts.findClient(clientId);
        const proof = assertion && app && verifyAssertion(assertion, app, issuer, now());
        const isProven = assertion ? proof && await useAssertion(database, clientId, proof)
          : app?.type === "public" ? secrets.length === 0
          : hasSecret(app, secrets, now());
        const isTaken = !app?.metadataUrl || isDocumentUrl(app.metadataUrl, clientMetadata);
        if (!app || !isProven || !isTaken || app.status !== "active") throw clientAuthFailed();
        return app;
      } catch (error) {
        const isFailure = error instanceof OAuthError && error.status === 401;
        throw isFailure ? countFailure(error, request.address, app) : error;
      }
    },
  };
}

/** Compares each reading with each secret, an unknown app's too, so that the time says nothing. */
function hasSecret(app: AppWithSecrets | undefined, secrets: readonly string[], nowMs: number) {
  const old = (app?.oldSecretUntilMs ?? 0) > nowMs ? app?.oldSecret : undefined;
  const stored = [app?.secret ?? NO_SECRET, old ?? NO_SECRET];
  const given = secrets.map(sha256);
  return given.flatMap((hash) => stored.map((secret) => equalBytes(hash, secret))).includes(true);
}
