import type { LookupFunction } from "node:net";
import { type Address, formatAddress } from "../base/address.ts";
import type { Cidr } from "../base/cidr.ts";
import { type AgentOptions, createAgentPool } from "./agent_pool.ts";
import { createNameLookup, type NameLookup } from "./name_lookup.ts";
import { checkReachable, isReachable, refusal } from "./reachable.ts";

/** What a guard works with. */
export interface GuardOptions extends AgentOptions {
  /** Blocks that may be reached although they are not public. */
  readonly allow: readonly Cidr[];
  /** How a host name becomes addresses; createNameLookup() if not given. */
  readonly lookup?: NameLookup;
}

/** What is sent through a guard. */
export interface EgressRequest extends Omit<RequestInit, "headers" | "body"> {
  readonly headers?: Readonly<Record<string, string>>;
  readonly body: string;
}

/** Lets requests of `fetch` reach only those addresses that callbacks may reach. */
export interface Guard {
  /** The same request, bound to the guard: `fetch(url, guard.guarded(init))`. */
  guarded(request: EgressRequest): RequestInit;
  /** Ends idle connections and what is still in flight. */
  close(): Promise<void>;
}

/** More addresses than this of one name are not tried: a name is not a list of hosts to scan. */
const MAX_ADDRESSES = 8;
/** So many origins are remembered as checked; the addresses of a name never are. */
const MAX_ORIGINS = 1_000;

/**
 * Makes a guard: only what isReachable() allows is connected to, over http and https alike. Literal
 * addresses are checked before a connection is looked for, names when one is made: the result of
 * the lookup is checked and exactly what is left of it is connected to, so that a result that
 * changes between check and use (DNS rebinding) gains nothing. A connection kept alive leads to the
 * address that was checked when it was made.
 */
export function createGuard({ allow, lookup, ...options }: GuardOptions): Guard {
  const pool = createAgentPool(options, checkedLookup(lookup ?? createNameLookup(), allow));
  const checked = new Set<string>();

  function checkOrigin(origin: string): void {
    if (checked.has(origin)) return;
    checkReachable(new URL(origin), allow);
    if (checked.size >= MAX_ORIGINS) checked.clear();
    checked.add(origin);
  }

  return {
    // The body goes past fetch, which would make three streams of it: half of an exchange's cost.
    guarded({ body, headers, ...init }) {
      const dispatcher: Pick<typeof pool, "dispatch"> = {
        dispatch(request, handler) {
          // Sockets do not look up literals, so those are checked here, where every request passes.
          checkOrigin(String(request.origin));
          return pool.dispatch({ ...request, body }, handler);
        },
      };
      const length = String(Buffer.byteLength(body));
      return Object.assign(init, { headers: { ...headers, "Content-Length": length }, dispatcher });
    },
    close: pool.close,
  };
}

/** A lookup for sockets: the reachable ones of a name's addresses, or EgressError for none. */
function checkedLookup(lookup: NameLookup, allow: readonly Cidr[]): LookupFunction {
  const findReachable = async (hostname: string) => {
    const addresses = (await lookup(hostname))
      .filter((address) => isReachable(address, allow)).slice(0, MAX_ADDRESSES).map(toDial);
    const [first] = addresses;
    if (first === undefined) throw refusal(hostname);
    return { first, addresses };
  };
  return (hostname, { all }, callback) => {
    findReachable(hostname).then(
      ({ first, addresses }) => {
        // Sockets that try several addresses ask for all of them, others for one.
        if (all === true) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: Error) => callback(error, []),
    );
  };
}

function toDial(address: Address): { address: string; family: number } {
  return { address: formatAddress(address), family: address.family };
}
