const REPEAT_MS = 60_000;

/**
 * Makes a check whether to log a failure that may repeat. It is true where the same message has not
 * been logged within the last minute.
 *
 * @param elapsedMs milliseconds of a clock that is never set
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
