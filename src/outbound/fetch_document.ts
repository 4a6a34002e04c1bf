import type { Cidr } from "../base/cidr.ts";
import { isJsonType, parseJson } from "../base/json.ts";
import { Problem } from "../base/problem.ts";
import { isRecord } from "../base/shape.ts";
import { isSecureUrl } from "../oauth/redirect_uri.ts";
import { createEgress, type Egress, readStart } from "./egress.ts";
import { settleFailure } from "./failure.ts";

/** A document of another server, or in a few words why there is none. */
export type FetchedDocument =
  | {
    readonly document: Readonly<Record<string, unknown>>;
    /** How long it may be used: what its `Cache-Control` allows, between 5 minutes and a day. */
    readonly freshMs: number;
  }
  | { readonly reason: string };

/** Fetches a JSON object. It never rejects: failures are results. */
export type DocumentFetch = ReturnType<typeof createDocumentFetch>;

const MIN_FRESH_MS = 300_000;
const MAX_FRESH_MS = 86_400_000;

/** Makes the guard of document fetches: few connections, only to where callbacks may go. */
export function createDocumentEgress(allow: readonly Cidr[]): Egress {
  return createEgress({ allow, connectionsPerOrigin: 4, timeoutMs: 5_000 });
}

/**
 * Makes a function that fetches JSON objects through the guard: a GET that follows no redirect,
 * accepts only status 200, and reads no further than the limit.
 */
export function createDocumentFetch(egress: Pick<Egress, "send" | "selfTest">) {
  let tested: ReturnType<Egress["selfTest"]> | undefined;

  return async (url: string, { limitBytes, timeoutMs, isTyped = false }: {
    readonly limitBytes: number;
    /** For the whole exchange, however slowly its bytes come. */
    readonly timeoutMs: number;
    /** Whether to refuse a document whose `Content-Type` is something else than JSON. */
    readonly isTyped?: boolean;
  }): Promise<FetchedDocument> => {
    const parsed = URL.parse(url);
    if (!parsed || !isSecureUrl(parsed)) return { reason: "its address is not https" };
    const test = await (tested ??= egress.selfTest());
    if (!test.ok) {
      tested = undefined;
      return { reason: "the address guard does not work here" };
    }
    const startedMs = performance.now();
    try {
      const response = await egress.send(url, {
        headers: { "Accept": "application/json", "Accept-Encoding": "identity" },
        signal: AbortSignal.timeout(timeoutMs),
      });
      const { status, headers, body } = response;
      const reason = status === 200 ? unreadable(headers, isTyped) : `status ${status}`;
      if (reason) {
        await body?.cancel();
        return { reason };
      }
      const bytes = await readStart(response, limitBytes + 1);
      if (bytes.length > limitBytes) return { reason: `it is longer than ${limitBytes} bytes` };
      const document = parseJson(bytes);
      return isRecord(document)
        ? { document, freshMs: freshMs(headers.get("cache-control") ?? "") }
        : { reason: "it is no JSON object" };
    } catch (error) {
      if (error instanceof Problem) return { reason: "it is no JSON object" };
      return { reason: await settleFailure(error, startedMs) };
    }
  };
}

/** Returns why the body is not read, by its headers; undefined if it may be read. */
function unreadable(headers: Headers, isTyped: boolean): string | undefined {
  if ((headers.get("content-encoding") ?? "identity") !== "identity") return "it is encoded";
  const [type = ""] = (headers.get("content-type") ?? "application/json").toLowerCase().split(";");
  return isTyped && !isJsonType(type.trim()) ? "its type is not JSON" : undefined;
}

/** Returns `max-age` of a Cache-Control (RFC 9111 §5.2.2.1), within the bounds above. */
function freshMs(cacheControl: string): number {
  const seconds = /(?:^|[\s,])max-age="?(\d{1,9})/i.exec(cacheControl)?.[1] ?? 0;
  return Math.min(Math.max(Number(seconds) * 1_000, MIN_FRESH_MS), MAX_FRESH_MS);
}
