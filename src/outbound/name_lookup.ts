import { Resolver } from "node:dns/promises";
import { open, readFile } from "node:fs/promises";
import { setTimeout as delay } from "node:timers/promises";
import { type Address, parseAddress } from "../base/address.ts";
import { findCode } from "./failure.ts";
import { EgressError } from "./reachable.ts";
import { isShortage } from "./shortage.ts";

/**
 * Finds the addresses of a host name, IPv4 first. Rejects with EgressError where the name has none,
 * or no name server answered in time. Rejects with the system's error where this process lacks a
 * resource for the lookup (shortage.ts).
 */
export type NameLookup = (name: string) => Promise<readonly Address[]>;

const HOSTS_FILE = "/etc/hosts";
/** The resolver's codes where no name server could be asked, or none had an answer. */
const UNANSWERED = ["ECONNREFUSED", "ETIMEOUT", "ESERVFAIL", "EREFUSED"];
/** How long one family's addresses wait for the other's (RFC 8305 §3 has 50 ms). */
const OTHER_FAMILY_WAIT_MS = 250;

/**
 * Makes a lookup that reads the hosts file, then asks DNS for A and AAAA together. It has its own
 * timeout and a resolver for each name, never the thread pool's getaddrinfo, so that a name that
 * hangs delays nothing but itself. It keeps no cache: what it returns is connected to next. Names
 * are absolute: search domains are not tried. `localhost` and all below it are the loopback
 * addresses, without asking DNS (RFC 6761 §6.3).
 */
export function createNameLookup(options: {
  /** For one name in all: hosts file and both families. */
  readonly timeoutMs: number;
  /** Name servers, as `address` or `address:port`; the system's if not given. */
  readonly servers?: readonly string[];
  /** Reads the text of the hosts file; the system's if not given. An unreadable one is empty. */
  readonly readHosts?: () => Promise<string>;
}): NameLookup {
  const { timeoutMs, servers, readHosts = () => readFile(HOSTS_FILE, "utf8") } = options;

  async function findAddresses(resolver: Resolver, host: string): Promise<readonly Address[]> {
    const local = findInHosts(await readHostsIfAny(), host);
    if (local.length > 0) return local;

    const families = [resolver.resolve4(host), resolver.resolve6(host)];
    // Rejects when both families have failed; if one fails alone, the other decides.
    const none = Promise.any(families).then((): string[] => []);
    const late = none.then((empty) => delay(OTHER_FAMILY_WAIT_MS, empty, { ref: false }));
    const found = families.map((each) => Promise.race([each.catch(() => none), late]));
    try {
      return parseAll((await Promise.all(found)).flat());
    } catch (cause) {
      // The resolver does not report that it got no socket. Reading the file reports it.
      await readHostsIfAny();
      const isUnanswered = cause instanceof AggregateError &&
        cause.errors.every((error) => UNANSWERED.includes(findCode(error) ?? ""));
      const code = isUnanswered ? "NAME_LOOKUP_UNANSWERED" : "NAME_LOOKUP_FAILED";
      throw new EgressError(code, `no address: ${host}`, { cause });
    }
  }

  /**
   * Returns the hosts file, or "" where it is absent or Node's permission model denies it. A denied
   * file cannot show a shortage, so this module's file, which may be read, is opened instead.
   */
  function readHostsIfAny(): Promise<string> {
    const throwShortage = (error: unknown) => {
      if (isShortage(findCode(error))) throw error;
    };
    return readHosts().catch(async (error: unknown) => {
      throwShortage(error);
      await open(import.meta.filename).then((file) => file.close(), throwShortage);
      return "";
    });
  }

  return async (name) => {
    const host = name.toLowerCase().replace(/\.$/, "");
    if (host === "localhost" || host.endsWith(".localhost")) return parseAll(["127.0.0.1", "::1"]);
    // A third of the time each, so that a dead first name server leaves time for the next.
    const resolver = new Resolver({ timeout: Math.ceil(timeoutMs / 3), tries: 2 });
    if (servers !== undefined) resolver.setServers(servers);
    const late = Promise.withResolvers<never>();
    using _timer = setTimeout(() => {
      late.reject(new EgressError("NAME_LOOKUP_UNANSWERED", `no answer in time: ${host}`));
    }, timeoutMs);
    try {
      return await Promise.race([findAddresses(resolver, host), late.promise]);
    } finally {
      resolver.cancel();
    }
  };
}

/** The addresses of a name in a hosts file (hosts(5)), in the file's order. */
export function findInHosts(hosts: string, name: string): readonly Address[] {
  const lines = hosts.split("\n").map((line) => line.replace(/#.*/s, "").trim().split(/\s+/));
  const named = lines.filter(([, ...names]) => names.some((each) => each.toLowerCase() === name));
  return parseAll(named.map(([address = ""]) => address));
}

/** Returns the texts that are addresses. One with a zone (`fe80::1%eth0`) is not. */
function parseAll(texts: readonly string[]): readonly Address[] {
  return texts.map(parseAddress).filter((address) => address !== undefined);
}
