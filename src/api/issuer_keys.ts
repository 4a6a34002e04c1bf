import { importPublicJwk, PUBLIC_JWK } from "../base/jwk.ts";
import type { Services } from "../services.ts";

/** Keys that verify, by their `kid`: those of several kinds may have one (RFC 7517 §4.5). */
type Keys = ReadonlyMap<string, readonly NonNullable<ReturnType<typeof importPublicJwk>>[]>;

interface KeySet {
  keys: Keys;
  /** Until then they need no look, while no more changes have been made of issuers. */
  freshUntilMs: number;
  changes: number;
  triedAtMs: number;
  /** When they were fetched last for a key that was not among fresh ones. */
  soughtAtMs: number;
  hasFailed: boolean;
  fetching: Promise<void> | undefined;
}

/** Each is tried for every token that is wrong: of hundreds that takes as long as an outage. */
const MAX_OF_KID = 4;
/** Of what is fetched from an issuer. */
export const ISSUER_LIMITS = { limitBytes: 65_536, timeoutMs: 5_000 };
/** How much longer keys serve if there is no way to look. */
const STALE_MS = 24 * 60 * 60_000;
/** Between two looks for a key that is not known, and where no keys serve, or older ones. */
const [UNKNOWN_MS, NONE_MS] = [60_000, 10_000];

/** The keys at an address (RFC 7517 §5), or why there are none; those that fit nothing are left. */
export async function fetchKeys(
  uri: string,
  { fetchDocument }: Pick<Services, "fetchDocument">,
): Promise<{ readonly keys: Keys; readonly freshMs: number } | { readonly reason: string }> {
  const fetched = await fetchDocument(uri, ISSUER_LIMITS);
  if ("reason" in fetched) return fetched;
  const { document, freshMs } = fetched;
  const list: unknown = document["keys"];
  if (!Array.isArray(list)) return { reason: "it has no list of keys" };
  const keys = list.flatMap((given: unknown) => {
    const errors: string[] = [];
    const jwk = PUBLIC_JWK.parse(given, (detail) => void errors.push(detail));
    const key = errors.length === 0 ? importPublicJwk(jwk) : undefined;
    return key && jwk.kid !== undefined ? { kid: jwk.kid, ...key } : [];
  });
  const byKid = Map.groupBy(keys, ({ kid }) => kid);
  for (const same of byKid.values()) same.splice(MAX_OF_KID);
  return { keys: byKid, freshMs };
}

/**
 * Makes what finds keys of other issuers, which are in memory. All who wait for one address wait
 * for one fetch; where the last has failed, known keys serve a day more and wait for none.
 */
export function createIssuerKeys(services: Pick<Services, "fetchDocument" | "now">) {
  const { now } = services;
  const sets = new Map<string, KeySet>();

  async function refresh(uri: string, set: KeySet, changes: number): Promise<void> {
    set.triedAtMs = now();
    const fetched = await fetchKeys(uri, services);
    set.hasFailed = "reason" in fetched;
    if ("keys" in fetched) {
      set.keys = fetched.keys;
      set.freshUntilMs = now() + fetched.freshMs;
      set.changes = changes;
    }
    set.fetching = undefined;
  }

  /** The keys of this `kid`, and until when they need not be looked for again. */
  return async (uri: string, kid: string, changes: number) => {
    const set = sets.getOrInsertComputed(uri, () => ({
      keys: new Map(), freshUntilMs: -Infinity, changes, triedAtMs: 0, soughtAtMs: 0,
      hasFailed: false, fetching: undefined,
    }));
    const serves = () => set.freshUntilMs + STALE_MS > now();
    // Who changes an issuer may do so because its keys have leaked.
    const isOfNow = () => set.changes >= changes;
    // Keys of a later time were fetched before the clock was set back, nobody knows how long ago.
    const isFresh = () => isOfNow() && set.triedAtMs <= now() && now() < set.freshUntilMs;
    const isWanted = !isFresh() || !set.keys.has(kid);
    const pauseMs = serves() && isOfNow() ? UNKNOWN_MS : NONE_MS;
    const sinceMs = Math.abs(now() - (isFresh() ? set.soughtAtMs : set.triedAtMs));
    if (isWanted && sinceMs >= pauseMs) {
      if (isFresh()) set.soughtAtMs = now();
      set.fetching ??= refresh(uri, set, changes);
    }
    if (isWanted && !(set.hasFailed && serves() && set.keys.has(kid))) await set.fetching;
    const keys = serves() ? set.keys.get(kid) : undefined;
    const soonMs = Math.min(now() + pauseMs, set.freshUntilMs + STALE_MS);
    return keys && { keys, untilMs: isFresh() ? set.freshUntilMs : soonMs };
  };
}
