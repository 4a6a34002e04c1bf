import { Problem, type ProblemOptions } from "../base/problem.ts";

/**
 * Every `error` of Gatepost's OAuth endpoints, and its status: RFC 6749 §4.1.2.1 (authorize) and
 * §5.2 (token), RFC 6750 §3.1 (bearer), RFC 7009 §2.2.1 (revoke), RFC 8628 §3.5 (device),
 * RFC 8707 §2 (resource).
 */
const STATUS = {
  access_denied: 400,
  authorization_pending: 400,
  expired_token: 400,
  insufficient_scope: 403,
  invalid_client: 401,
  invalid_grant: 400,
  invalid_request: 400,
  invalid_scope: 400,
  invalid_target: 400,
  invalid_token: 401,
  server_error: 500,
  slow_down: 400,
  temporarily_unavailable: 503,
  unauthorized_client: 400,
  unsupported_grant_type: 400,
  unsupported_response_type: 400,
};

/** The challenge of every `invalid_client` (RFC 6749 §5.2, RFC 7617 §2 and §2.1). */
const BASIC_CHALLENGE = 'Basic realm="gatepost", charset="UTF-8"';

/**
 * An error of an OAuth endpoint. It is sent as JSON (RFC 6749 §5.2) or as an error redirect
 * (§4.1.2.1). The message is for developers and never holds input; characters that RFC 6749 §5.2
 * forbids are replaced. An `invalid_client` brings the Basic challenge. For the errors of RFC 6750
 * §3.1 the caller adds the challenge.
 */
export class OAuthError extends Problem<keyof typeof STATUS> {
  /**
   * @param options.status replaces the usual status of the code: 429 for throttling
   * @param options.headers further headers, such as `Retry-After`
   */
  constructor(
    code: OAuthError["code"],
    description: string,
    options: Pick<ProblemOptions, "headers"> & { readonly status?: number } = {},
  ) {
    // RFC 6749 §5.2: %x20-21 / %x23-5B / %x5D-7E.
    const printable = description
      .replaceAll('"', "'")
      .replaceAll("\\", "/")
      .replace(/[^\x20-\x7e]/gu, "?");
    const challenge = code === "invalid_client" ? { "WWW-Authenticate": BASIC_CHALLENGE } : {};
    const headers = { ...challenge, ...options.headers };
    super(options.status ?? STATUS[code], code, printable, { headers });
  }
}

/** Makes the error of a request with a missing, wrong or repeated parameter or another defect. */
export function invalidRequest(description: string): OAuthError {
  return new OAuthError("invalid_request", description);
}
