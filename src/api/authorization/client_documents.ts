import { createCache } from "../../base/cache.ts";
import { tooMany } from "../../base/problem.ts";
import { createThrottle } from "../../base/throttle.ts";
import { throttleAddress } from "../../http/client_address.ts";
import { type ClientDocument, parseClientDocument } from "../../oauth/client_metadata.ts";
import type { Services } from "../../services.ts";

/** Finds the metadata documents of clients (draft-ietf-oauth-client-id-metadata-document). */
export type ClientDocuments = ReturnType<typeof createClientDocuments>;

const CACHE_LIMIT = 1_000;
// No such document is larger (section 8.7 of draft-ietf-oauth-client-id-metadata-document-02).
// isTyped: a file that somebody uploads to a host as text or a picture does not speak for the host.
const FETCH = { limitBytes: 5 * 1024, timeoutMs: 5_000, isTyped: true };
// Anybody can cause fetches, so they are limited: per address, and for all together.
const WINDOW_MS = 15 * 60_000;
const FETCHES_OF_ADDRESS = 30;
const FETCHES = 600;
const ALL = "all";

/** Makes the look-up. Documents are cached for as long as their responses say, failures are not. */
export function createClientDocuments(
  { fetchDocument, now }: Pick<Services, "fetchDocument" | "now">,
) {
  type Found = ReturnType<typeof parseClientDocument>;
  type Times = Readonly<Record<"atMs" | "freshMs", number>>;
  const cache = createCache<Times & { readonly document: ClientDocument }>(CACHE_LIMIT);
  const underWay = new Map<string, Promise<Found>>();
  const byAddress = createThrottle({ limit: FETCHES_OF_ADDRESS, windowMs: WINDOW_MS, now });
  const overall = createThrottle({ limit: FETCHES, windowMs: WINDOW_MS, now });

  async function load(url: string): Promise<Found> {
    const fetched = await fetchDocument(url, FETCH);
    if ("reason" in fetched) return { reason: `It cannot be read: ${fetched.reason}.` };
    const document = parseClientDocument(url, fetched.document);
    const { freshMs } = fetched;
    if (!("reason" in document)) cache.set(url, { document, atMs: now(), freshMs });
    return document;
  }

  return {
    /**
     * Returns the document at a URL, or why it is refused. Simultaneous requests share one fetch.
     * Throws Problem 429 if this address, or all addresses together, caused too many fetches.
     */
    async find(url: string, address: string): Promise<Found> {
      const known = cache.get(url);
      const ageMs = known ? now() - known.atMs : -1; // less than 0 also if the clock was set back
      if (known && ageMs >= 0 && ageMs < known.freshMs) return known.document;
      return underWay.getOrInsertComputed(url, () => {
        const from = throttleAddress(address);
        const waitMs = Math.max(byAddress.waitMs(from), overall.waitMs(ALL));
        if (waitMs > 0) throw tooMany("throttled", "Too many client documents fetched.", waitMs);
        byAddress.fail(from);
        overall.fail(ALL);
        return load(url).finally(() => underWay.delete(url));
      });
    },
  };
}
