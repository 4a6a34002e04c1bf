/**
 * Every `error` that Gatepost's OAuth endpoints answer with: RFC 6749 §4.1.2.1 (authorize) and §5.2
 * (token), RFC 6750 §3.1 (bearer), RFC 7009 §2.2.1 (revoke), RFC 8707 §2 (resource).
 */
export type OAuthErrorCode =
  | "access_denied"
  | "insufficient_scope"
  | "invalid_client"
  | "invalid_grant"
  | "invalid_request"
  | "invalid_scope"
  | "invalid_target"
  | "invalid_token"
  | "server_error"
  | "temporarily_unavailable"
  | "unauthorized_client"
  | "unsupported_grant_type"
  | "unsupported_response_type";

/** What may go with an OAuth error beside its code and description. */
export interface OAuthErrorOptions {
  /** Instead of the code's usual status: 429 for a `temporarily_unavailable` that is throttling. */
  readonly status?: number;
  /** Sent beside those of the code: `Retry-After`. */
  readonly headers?: Readonly<Record<string, string>>;
  readonly cause?: unknown;
}

/** The challenge of every `invalid_client` (RFC 6749 §5.2, RFC 7617 §2 and §2.1). */
const BASIC_CHALLENGE = 'Basic realm="gatepost", charset="UTF-8"';

/** The body of an error answer (RFC 6749 §5.2). */
export interface OAuthErrorBody {
  readonly error: OAuthErrorCode;
  readonly error_description: string;
}

/**
 * An outcome that ends a request at an OAuth endpoint: thrown anywhere, turned into RFC 6749 §5.2
 * JSON or an error redirect (§4.1.2.1) in one place. The description is for developers and never
 * holds input; what RFC 6749 §5.2 forbids in it is replaced. An `invalid_client` has status 401 and
 * the Basic challenge, `invalid_token` 401 and `insufficient_scope` 403 (RFC 6750 §3.1; their
 * challenge is the caller's), `temporarily_unavailable` 503, `server_error` 500, all others 400.
 */
export class OAuthError extends Error {
  override readonly name = "OAuthError";
  readonly error: OAuthErrorCode;
  readonly description: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  constructor(error: OAuthErrorCode, description: string, options: OAuthErrorOptions = {}) {
    const printable = toDescription(description);
    super(printable, options.cause === undefined ? undefined : { cause: options.cause });
    this.error = error;
    this.description = printable;
    this.status = options.status ?? usualStatus(error);
    const challenge = error === "invalid_client" ? { "WWW-Authenticate": BASIC_CHALLENGE } : {};
    this.headers = { ...challenge, ...options.headers };
  }

  /** The JSON body of this error (RFC 6749 §5.2). */
  toBody(): OAuthErrorBody {
    return { error: this.error, error_description: this.description };
  }
}

/** RFC 6749 §5.2: error_description is %x20-21 / %x23-5B / %x5D-7E. */
function toDescription(text: string): string {
  return text
    .replaceAll('"', "'")
    .replaceAll("\\", "/")
    .replace(/[^\x20-\x7e]/gu, "?");
}

function usualStatus(error: OAuthErrorCode): number {
  if (error === "invalid_client" || error === "invalid_token") return 401;
  if (error === "insufficient_scope") return 403;
  if (error === "temporarily_unavailable") return 503;
  return error === "server_error" ? 500 : 400;
}
