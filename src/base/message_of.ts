/** The message of whatever was thrown, which may be an Error whose message is no text. */
export function messageOf(error: unknown): string {
  return String(error instanceof Error ? error.message : error);
}
