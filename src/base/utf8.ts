/** Returns the text of UTF-8 bytes with any byte order mark; undefined for other bytes. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The same without a byte order mark, which some editors write at the start of a file. */
export function decodeText(bytes: Uint8Array): string | undefined {
  return decodeUtf8(bytes)?.replace(/^\ufeff/, "");
}
