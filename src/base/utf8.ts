/** The text of these bytes, with its byte order mark if it has one; undefined where not UTF-8. */
export function decodeUtf8(bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}

/** The same of what people write: without the byte order mark that some editors begin it with. */
export function decodeText(bytes: Uint8Array): string | undefined {
  return decodeUtf8(bytes)?.replace(/^\ufeff/, "");
}
