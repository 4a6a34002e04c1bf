import { decodeUtf8 } from "./utf8.ts";

/** A parsed form or query string: names and values, decoded. */
export type Form = ReturnType<typeof toForm>;

/** The largest form that is read, unless an endpoint sets a limit of its own. */
export const MAX_FORM_BYTES = 64 * 1024;
/** The most pairs that `parseForm` accepts. No form of the service has as many. */
const MAX_PAIRS = 256;

/**
 * Returns the pairs of an application/x-www-form-urlencoded body or query string, decoded strictly
 * as in the WHATWG URL Standard §5.1. Returns undefined, and no pair, where a `%` is not followed
 * by two hexadecimal digits, where bytes are not UTF-8, and beyond 256 pairs. A string is a query,
 * which RFC 3986 §2 limits to ASCII: for other characters it is undefined too.
 */
export function parseForm(input: Uint8Array | string): Form | undefined {
  if (typeof input === "string" && /[^\x00-\x7f]/.test(input)) return undefined;
  // The format has no byte order mark. A mark that is kept only makes the first name unknown.
  const pairs = parsePairs(typeof input === "string" ? input : decodeUtf8(input));
  return pairs && pairs.size <= MAX_PAIRS ? toForm(pairs) : undefined;
}

/** Returns the pairs of a form or query, without a limit; undefined where the text is malformed. */
export function parsePairs(text: string | undefined): URLSearchParams | undefined {
  const isWellFormed = text !== undefined && decodeFormText(text) !== undefined;
  // URLSearchParams drops a leading question mark, which may be part of the first name.
  return isWellFormed ? new URLSearchParams(`?${text}`) : undefined;
}

/**
 * Returns one form-encoded name or value decoded (`+` is a space, `%XX` a byte of UTF-8), or
 * undefined where it is not well-formed.
 */
export function decodeFormText(text: string): string | undefined {
  const spaced = text.replaceAll("+", " ");
  if (!spaced.includes("%")) return spaced;
  try {
    return decodeURIComponent(spaced);
  } catch {
    return undefined; // an incomplete escape, or not UTF-8
  }
}

function toForm(pairs: URLSearchParams) {
  const names = [...pairs.keys()];
  return {
    /**
     * The value of `name`, or undefined where it is absent, empty (RFC 6749 §3.1: a parameter
     * without a value counts as omitted) or repeated: no caller takes one of several by chance.
     */
    get(name: string): string | undefined {
      const [value, ...others] = pairs.getAll(name);
      return value === "" || others.length > 0 ? undefined : value;
    },
    /** Every non-empty value of `name` in order, for what may repeat (`resource`, RFC 8707 §2). */
    getAll: (name: string) => pairs.getAll(name).filter((value) => value !== ""),
    /** The names that occur more than once, with or without a value (RFC 6749 §3.2). */
    duplicates: [...new Set(names.filter((name, at) => names.indexOf(name) < at))],
  };
}
