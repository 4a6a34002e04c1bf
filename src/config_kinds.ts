import { formatAddress } from "./base/address.ts";
import {
  canonicalHost,
  isOrigin,
  isWildcardHost,
  listeningUrl,
  parseBaseUrl,
} from "./base/base_url.ts";
import { parseCidr } from "./base/cidr.ts";
import { isPath, type Kind, kindOf, list, textKind, wholeNumber } from "./base/env.ts";
import { PASSWORD_BYTES } from "./base/password.ts";
import { formatRate, parseRate, type Rate, RATE_FORM } from "./base/rate.ts";
import type { DocumentHosts } from "./oauth/client_metadata.ts";
import { checkPassword } from "./oauth/user.ts";

/** Where the console is served: with all the rest, nowhere, or by a listener of its own. */
type ConsolePlace = "on" | "off" | { readonly host: string; readonly port: number };

/** How many entries a list of addresses, hosts or origins may have. */
const MAX_LIST = 1_000;

// The kinds of values besides those of base/env.ts: how each is parsed, and formatted as text.

export const onOff = kindOf(
  (text) => ["on", "off"].includes(text) ? text === "on" : undefined,
  "is not one of: on, off",
  (value) => (value ? "on" : "off"),
);

const portNumber = wholeNumber(0, 65_535);

export const port: Kind<number> = {
  ...portNumber,
  parse(text) {
    const parsed = portNumber.parse(text);
    if (!("wrong" in parsed) || !/^(tcp|udp|sctp):/.test(text)) return parsed;
    const source = "Kubernetes sets it for a service that is named gatepost";
    return { wrong: `${parsed.wrong}; ${source}: set it yourself, or enableServiceLinks: false` };
  },
};

export const host = kindOf(
  canonicalHost,
  "is not a host name or an IP address without brackets, such as 127.0.0.1 or ::1",
);

const hosts = list(host, MAX_LIST);

export const documentHosts: Kind<DocumentHosts> = {
  parse(text) {
    if (text === "on" || text === "off") return { value: text };
    const isMixed = text.split(",").some((part) => /^\s*(?:on|off|none)\s*$/i.test(part));
    return isMixed ? { wrong: "is not off, on, or hosts such as app.example" } : hosts.parse(text);
  },
  format: (value) => typeof value === "string" ? value : hosts.format(value),
};

export const consolePlace: Kind<ConsolePlace> = {
  parse(text) {
    if (text === "on" || text === "off") return { value: text };
    const [, name = "", port] = /^(.+):(\d+)$/.exec(text) ?? [];
    const host = canonicalHost(name.replace(/^\[(.*)\]$/, "$1"));
    const isPlace = host !== undefined && !isWildcardHost(host) && Number(port) <= 65_535;
    return isPlace
      ? { value: { host, port: Number(port) } }
      : { wrong: "is not on, off, or HOST:PORT of one address, such as 127.0.0.1:9090" };
  },
  format: (value) =>
    typeof value === "string" ? value : new URL(listeningUrl(value.host, value.port)).host,
};

export const baseUrl: Kind<string> = { parse: parseBaseUrl, format: String };

// Without characters that control, hide or reverse text, since headers and titles contain it.
export const displayName = textKind(
  (text) => /^[^\p{C}\p{Zl}\p{Zp}]{1,64}$/u.test(text) && text.trim() === text,
  "is not a name of 1 to 64 characters, without controls and spaces around it",
);

export const folderPath = textKind(isPath, "is not the path of a folder, such as ./endpoints");

// HTTP Basic sends both as one text, separated by the first colon.
export const credentials = textKind(
  (text) => /^[^:\p{C}]+:\P{C}+$/u.test(text),
  "is not user:password",
);

export const origins = list(
  textKind(isOrigin, "is not an origin in canonical form, such as https://app.example.com"),
  MAX_LIST,
);

export const rateOrNone: Kind<Rate | undefined> = {
  parse(text) {
    const value = parseRate(text);
    return value || text === "none" ? { value } : { wrong: `is not ${RATE_FORM}` };
  },
  format: (value) => (value ? formatRate(value) : "none"),
};

const cidr = kindOf(
  parseCidr,
  "is not a CIDR such as 10.0.0.0/8, fd00::/8 or 192.0.2.7, its host bits zero",
  ({ network, prefixBits }) => `${formatAddress(network)}/${prefixBits}`,
);

export const cidrs = list(cidr, MAX_LIST);

// RFC 6750 §2.1, b64token: no other text can be sent as a bearer token.
export const metricsToken = textKind(
  (text) => /^[A-Za-z0-9._~+/-]{16,1024}=*$/.test(text),
  "is not a token of 16 to 1024 characters of A-Z a-z 0-9 - . _ ~ + /",
);

export const password = textKind((text) => checkPassword(text) === undefined,
  `is not a password of ${PASSWORD_BYTES.min} to ${PASSWORD_BYTES.max} bytes`);

export const secretKeys = kindOf((text) => {
  const keys = text.split(",").map((part) => part.trim())
    .map((part) => ({ part, bytes: Buffer.from(part, "base64") }));
  // Node's decoder skips unknown characters, so the text must equal its own re-encoding.
  return keys.every(({ part, bytes }) => bytes.length === 32 && bytes.toString("base64") === part)
    ? keys.map(({ bytes }) => new Uint8Array(bytes))
    : undefined;
}, "is not 32 bytes in base64, such as `openssl rand -base64 32` prints, or several");
