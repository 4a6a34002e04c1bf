import type { HttpRequest } from "../../base/http_message.ts";
import type { Form } from "../../base/form.ts";
import { equalBytes, randomBytes, sha256 } from "../../base/secret.ts";
import type { App } from "../../oauth/app.ts";
import { clientAuthFailed, parseClientAuth } from "../../oauth/client_auth.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { Services } from "../../services.ts";
import type { AppWithSecrets } from "../../store/apps.ts";
import { ANONYMOUS, FAILED_AUTHENTICATION, UNKNOWN } from "../../store/audit.ts";
import { throttleAddress } from "../../http/client_address.ts";
import { createThrottle } from "../../base/throttle.ts";

/** Finds and proves the app that sends a request. */
export interface ClientAuthenticator {
  /** The app; throws OAuthError (RFC 6749 §2.3, §5.2), the same one whatever did not fit. */
  authenticate(request: HttpRequest, form: Form): Promise<App>;
}

const WINDOW_MS = 15 * 60_000;
const ADDRESS_LIMIT = 50;
const NO_SECRET = randomBytes(32); // matches nothing

/**
 * Makes the authentication of apps. Secrets have 256 bits, so the throttle is not what keeps them
 * from being guessed: past its limit an address hears 429 to its failures, and the right secret
 * still opens, so that nobody can lock out an app that shares the address.
 */
export function createClientAuthenticator(
  { accounts, failures, now }: Pick<Services, "accounts" | "failures" | "now">,
): ClientAuthenticator {
  const throttle = createThrottle({ limit: ADDRESS_LIMIT, windowMs: WINDOW_MS, now });

  function fail({ address }: HttpRequest, app: App | undefined): OAuthError {
    const from = throttleAddress(address);
    const waitMs = throttle.waitMs(from);
    if (waitMs === 0) {
      throttle.fail(from);
      failures.record(from, {
        actor: ANONYMOUS,
        action: FAILED_AUTHENTICATION,
        target: app?.id ?? UNKNOWN,
        address,
      });
      return clientAuthFailed();
    }
    return new OAuthError("temporarily_unavailable", "Too many failures from this address.", {
      status: 429,
      headers: { "Retry-After": String(Math.ceil(waitMs / 1000)) },
    });
  }

  return {
    async authenticate(request, form) {
      const { clientId, secrets } = parseCredentials(request, form, () => fail(request, undefined));
      const app = await accounts.findApp(clientId);
      const isProven = app?.type === "public"
        ? secrets.length === 0
        : hasSecret(app, secrets, now());
      if (!app || !isProven || app.status !== "active") throw fail(request, app);
      return app;
    },
  };
}

function parseCredentials(request: HttpRequest, form: Form, fail: () => OAuthError) {
  try {
    return parseClientAuth(request.headers.authorization, form);
  } catch (error) {
    const isFailure = error instanceof OAuthError && error.status === 401;
    if (!isFailure) throw error;
    const counted = fail();
    throw counted.status === 401 ? error : counted;
  }
}

/** Compares each reading with each secret, an unknown app's too, so that the time says nothing. */
function hasSecret(
  app: AppWithSecrets | undefined,
  secrets: readonly string[],
  nowMs: number,
): boolean {
  const old = (app?.oldSecretUntilMs ?? 0) > nowMs ? app?.oldSecret : undefined;
  const stored = [app?.secret ?? NO_SECRET, old ?? NO_SECRET];
  const given = secrets.map(sha256);
  return given.flatMap((hash) => stored.map((secret) => equalBytes(hash, secret))).includes(true);
}
