import { isIP } from "node:net";
import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { findCode, findIn } from "./failure.ts";

/** Codes of a shortage that any call meets: of descriptors, memory, an interface that is up. */
const ALWAYS = ["EMFILE", "ENFILE", "ENOBUFS", "ENOMEM", "ENETDOWN"];

/** The codes that any call gets without a network. They may also have other reasons. */
const WITHOUT_NETWORK = ["ENETUNREACH", "EADDRNOTAVAIL", "NAME_LOOKUP_UNANSWERED"];

/** Whether a code says that this process lacks what any call needs. */
export function isShortage(code: string | undefined): boolean {
  return code !== undefined && ALWAYS.includes(code);
}

/**
 * Returns the code of the resource that the service itself lacked when an exchange failed;
 * undefined where the failure is the subscriber's. Without a network (no address that leads out of
 * this machine) nobody can be reached, which is a shortage. With a network, three failures are the
 * subscriber's: an address without a route, an address of a family that this machine does not use,
 * and a name that nobody resolves. In a family that it uses, no local address means that no port is
 * left. Where this machine's addresses cannot be read, all are the subscriber's.
 *
 * @param interfaces those of this machine, with their addresses
 */
export function findShortage(
  error: unknown,
  interfaces: () => Interfaces = networkInterfaces,
): string | undefined {
  const code = findCode(error);
  if (isShortage(code)) return code;
  if (code === undefined || !WITHOUT_NETWORK.includes(code)) return undefined;
  const used = findFamilies(interfaces);
  if (used === undefined) return undefined;
  if (used.size === 0) return code;
  const family = isIP(findIn(error, addressOf) ?? "");
  return code === "EADDRNOTAVAIL" && used.has(family) ? code : undefined;
}

function addressOf(error: Error): string | undefined {
  return "address" in error && typeof error.address === "string" ? error.address : undefined;
}

type Address = Pick<NetworkInterfaceInfo, "address" | "internal">;
type Interfaces = Readonly<Record<string, readonly Address[] | undefined>>;

/** Returns the families (4, 6) with an address that leads out; undefined where that is unknown. */
function findFamilies(interfaces: () => Interfaces): ReadonlySet<number> | undefined {
  let found: Interfaces;
  try {
    found = interfaces();
  } catch {
    return undefined; // a sandbox without netlink sockets
  }
  const leadingOut = Object.values(found).flatMap((each) => each ?? [])
    .filter(({ internal, address }) =>
      !internal && !address.startsWith("fe80:") // link-local: to the next machine and no farther
    );
  return new Set(leadingOut.map(({ address }) => isIP(address)));
}
