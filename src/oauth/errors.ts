/**
 * Every `error` of Gatepost's OAuth endpoints: RFC 6749 §4.1.2.1 (authorize) and §5.2 (token),
 * RFC 6750 §3.1 (bearer), RFC 7009 §2.2.1 (revoke), RFC 8707 §2 (resource).
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

/** The statuses of codes that do not have 400 (RFC 6749 §5.2, RFC 6750 §3.1). */
const STATUS: { readonly [error in OAuthErrorCode]?: number } = {
  invalid_client: 401,
  invalid_token: 401,
  insufficient_scope: 403,
  server_error: 500,
  temporarily_unavailable: 503,
};

/** The challenge of every `invalid_client` (RFC 6749 §5.2, RFC 7617 §2 and §2.1). */
const BASIC_CHALLENGE = 'Basic realm="gatepost", charset="UTF-8"';

/**
 * An outcome that ends a request at an OAuth endpoint: thrown anywhere, turned into RFC 6749 §5.2
 * JSON or an error redirect (§4.1.2.1) in one place. The description is for developers and never
 * holds input; what RFC 6749 §5.2 forbids in it is replaced. An `invalid_client` has the Basic
 * challenge; those of RFC 6750 §3.1 are the caller's part.
 */
export class OAuthError extends Error {
  override readonly name = "OAuthError";
  readonly error: OAuthErrorCode;
  readonly description: string;
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;

  /**
   * @param options.status instead of the code's usual one: 429 for throttling
   * @param options.headers sent beside the challenge: `Retry-After`
   */
  constructor(
    error: OAuthErrorCode,
    description: string,
    options: { readonly status?: number; readonly headers?: Readonly<Record<string, string>> } = {},
  ) {
    // RFC 6749 §5.2: %x20-21 / %x23-5B / %x5D-7E.
    const printable = description
      .replaceAll('"', "'")
      .replaceAll("\\", "/")
      .replace(/[^\x20-\x7e]/gu, "?");
    super(printable);
    this.error = error;
    this.description = printable;
    this.status = options.status ?? STATUS[error] ?? 400;
    const challenge = error === "invalid_client" ? { "WWW-Authenticate": BASIC_CHALLENGE } : {};
    this.headers = { ...challenge, ...options.headers };
  }

  /** The JSON body of this error (RFC 6749 §5.2). */
  toBody(): { readonly error: OAuthErrorCode; readonly error_description: string } {
    return { error: this.error, error_description: this.description };
  }
}
