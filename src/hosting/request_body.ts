import { bodyTypeOf } from "../http/body_type.ts";
import { hasBody, type HttpRequest } from "../base/http_message.ts";
import { decodeFormText } from "../base/form.ts";
import { parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";
import { decodeUtf8 } from "../base/utf8.ts";

/** What came with a request, as far as it was read before the handler. */
export interface RequestBody {
  /** The context's `body`. */
  readonly value: unknown;
  /** The body's bytes where they were read; undefined: none came, or they are left unread. */
  readonly bytes: Buffer | undefined;
}

const NO_BODY: RequestBody = { value: undefined, bytes: undefined };

/**
 * Reads and parses a JSON or form body; bodies of other types are left unread.
 *
 * @throws {Problem} 400 `malformed`, 413 `too_large`, 415 `unsupported_media_type` for one
 * that says that it is compressed or not UTF-8
 */
export async function readEndpointBody(
  request: HttpRequest,
  limits: { readonly maxBytes: number; readonly maxFormBytes: number },
): Promise<RequestBody> {
  if (!hasBody(request)) return NO_BODY;
  const { kind, isPlain } = bodyTypeOf(request);
  const maxBytes = kind === "form" ? limits.maxFormBytes : limits.maxBytes;
  // Also where it is left unread: the handler might answer without looking at it.
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (kind === "other") return NO_BODY;
  if (!isPlain) {
    throw new Problem(415, "unsupported_media_type", "The body must be UTF-8, not compressed.");
  }
  const bytes = await request.readBody(maxBytes);
  if (bytes.length === 0) return NO_BODY;
  return { bytes, value: kind === "form" ? parseFields(bytes) : parseJson(bytes) };
}

/** Unlike URLSearchParams itself takes no bad escape, and nothing that is not UTF-8. */
function parseFields(bytes: Buffer): URLSearchParams {
  const text = decodeUtf8(bytes);
  if (text === undefined || decodeFormText(text) === undefined) {
    throw new Problem(400, "malformed", "The body is not a well-formed form in UTF-8.");
  }
  return new URLSearchParams(text);
}

/**
 * Returns the request as a web Request. Its body is what was read already, or else is read when it
 * is asked for, up to `maxBytes`; GET and HEAD have none (Fetch §5.4).
 */
export function toWebRequest(
  request: HttpRequest,
  body: RequestBody,
  options: { readonly baseUrl: string; readonly maxBytes: number },
): Request {
  const { method, path, query, signal } = request;
  const url = options.baseUrl + path + (query === "" ? "" : `?${query}`);
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const init = { method, headers, signal, duplex: "half" as const };
  if (method === "GET" || method === "HEAD" || !hasBody(request)) return new Request(url, init);
  const stream = (): ReadableStream => lazyStream(() => request.readBody(options.maxBytes));
  // A copy, since it is the handler's to change.
  const content = body.bytes === undefined ? stream() : new Uint8Array(body.bytes);
  return new Request(url, { ...init, body: content });
}

function lazyStream(read: () => Promise<Buffer>): ReadableStream<Uint8Array> {
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const bytes = await read();
      if (bytes.length > 0) controller.enqueue(bytes);
      controller.close();
    },
  }, { highWaterMark: 0 });
}

function tooLarge(maxBytes: number): Problem {
  return new Problem(413, "too_large", `The body is larger than ${maxBytes} bytes.`, {
    headers: { Connection: "close" }, // the rest is not worth reading
  });
}
