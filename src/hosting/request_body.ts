import { hasBody, type HttpRequest } from "../base/exchange.ts";
import { parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";

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
 * that is compressed or not UTF-8
 */
export async function readEndpointBody(
  request: HttpRequest,
  limits: { readonly maxBytes: number; readonly maxFormBytes: number },
): Promise<RequestBody> {
  if (!hasBody(request)) return NO_BODY;
  const type = mediaType(request);
  const isForm = type === "application/x-www-form-urlencoded";
  const maxBytes = isForm ? limits.maxFormBytes : limits.maxBytes;
  // Also where it is left unread: the handler might answer without looking at it.
  if (Number(request.headers["content-length"] ?? 0) > maxBytes) throw tooLarge(maxBytes);
  if (!isForm && type !== "application/json" && !type.endsWith("+json")) return NO_BODY;
  checkPlain(request);
  const bytes = await request.readBody(maxBytes);
  if (bytes.length === 0) return NO_BODY;
  return { bytes, value: isForm ? new URLSearchParams(bytes.toString()) : parseJson(bytes) };
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

function mediaType({ headers }: HttpRequest): string {
  const [type = ""] = (headers["content-type"] ?? "").split(";");
  return type.trim().toLowerCase();
}

/** Throws 415 for what would have to be decoded first (RFC 9110 §8.3.2, §8.4). */
function checkPlain({ headers }: HttpRequest): void {
  const coding = headers["content-encoding"] ?? "identity";
  const charset = /;\s*charset\s*=\s*"?([^";\s]*)/i.exec(headers["content-type"] ?? "")?.[1];
  if (coding.toLowerCase() !== "identity" || (charset ?? "utf-8").toLowerCase() !== "utf-8") {
    throw new Problem(415, "unsupported_media_type", "The body must be UTF-8, not compressed.");
  }
}

function tooLarge(maxBytes: number): Problem {
  return new Problem(413, "too_large", `The body is larger than ${maxBytes} bytes.`, {
    headers: { Connection: "close" }, // the rest is not worth reading
  });
}
