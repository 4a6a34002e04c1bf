const REPEAT_MS = 60_000;

/**
 * Makes the check whether a failure that may come again and again is worth a line of the log: where
 * the same message has not been written within the last minute.
 *
 * @param elapsedMs milliseconds by a clock that is never set
 */
export function createRepeatCheck(elapsedMs: () => number): (message: string) => boolean {
  const written = new Map<string, number>();
  return (message) => {
    const nowMs = elapsedMs();
    for (const [each, atMs] of written) if (nowMs - atMs >= REPEAT_MS) written.delete(each);
    if (written.has(message)) return false;
    written.set(message, nowMs);
    return true;
  };
}
