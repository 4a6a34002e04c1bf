import { importPublicJwk, PUBLIC_JWK } from "../base/jwk.ts";
import type { Services } from "../services.ts";

/** Public keys by `kid`; keys of different types may share a `kid` (RFC 7517 §4.5). */
type Keys = ReadonlyMap<string, readonly NonNullable<ReturnType<typeof importPublicJwk>>[]>;

interface KeySet {
  keys: Keys;
  /** Until then the keys are not fetched again, unless `changes` of issuers has grown. */
  freshUntilMs: number;
  changes: number;
  triedAtMs: number;
  /** When fresh keys were last fetched again, because a `kid` was not among them. */
  unknownKidTriedAtMs: number;
  hasFailed: boolean;
  fetching: Promise<void> | undefined;
}

/** Every wrong token is tried with all keys of its `kid`: hundreds would block the process. */
const MAX_OF_KID = 4;
/** The limits of one fetch from an issuer. */
export const ISSUER_LIMITS = { limitBytes: 65_536, timeoutMs: 5_000 };
/** How much longer keys are used while they cannot be fetched again. */
const STALE_MS = 24 * 60 * 60_000;
/** Pauses between fetches: while current keys serve, and while there are no or only older keys. */
const [UNKNOWN_MS, NONE_MS] = [60_000, 10_000];

/** Fetches the keys at a URL (RFC 7517 §5), or returns why not. Unusable keys are left out. */
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
 * Makes the look-up of other issuers' keys, which caches them in memory. Look-ups at one URL share
 * one fetch. After a failed fetch, known keys are used for a day more, without waiting.
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

  /** Returns the keys of this `kid`, and until when they need not be looked up again. */
  return async (uri: string, kid: string, changes: number) => {
    const set = sets.getOrInsertComputed(uri, () => ({
      keys: new Map(), freshUntilMs: -Infinity, changes, triedAtMs: 0, unknownKidTriedAtMs: 0,
      hasFailed: false, fetching: undefined,
    }));
    const isUsable = () => set.freshUntilMs + STALE_MS > now();
    // Keys fetched before an issuer changed are outdated: a leak may be the reason for the change.
    const isCurrent = () => set.changes >= changes;
    // A time in the future is from before the clock was set back: the age of the keys is unknown.
    const isFresh = () => isCurrent() && set.triedAtMs <= now() && now() < set.freshUntilMs;
    const isWanted = !isFresh() || !set.keys.has(kid);
    const pauseMs = isUsable() && isCurrent() ? UNKNOWN_MS : NONE_MS;
    const sinceMs = Math.abs(now() - (isFresh() ? set.unknownKidTriedAtMs : set.triedAtMs));
    if (isWanted && sinceMs >= pauseMs) {
      if (isFresh()) set.unknownKidTriedAtMs = now();
      set.fetching ??= refresh(uri, set, changes);
    }
    if (isWanted && !(set.hasFailed && isUsable() && set.keys.has(kid))) await set.fetching;
    const keys = isUsable() ? set.keys.get(kid) : undefined;
    const soonMs = Math.min(now() + pauseMs, set.freshUntilMs + STALE_MS);
    return keys && { keys, untilMs: isFresh() ? set.freshUntilMs : soonMs };
  };
}
