import type { HttpRequest, HttpResponse } from "../base/http_message.ts";

type Handle = (request: HttpRequest) => Promise<HttpResponse>;

/**
 * How often it is looked for what other processes have changed: a revocation, a withdrawn key or a
 * new rate takes effect in all of them within a second, by two polls and a commit.
 */
export const WATCH_INTERVAL_MS = 400;
/** With that a second, too. */
const STILL_MS = 1_000 - WATCH_INTERVAL_MS;
/** How often it is to be noticed that the process goes on. */
export const BEAT_MS = 200;
const PATIENCE_MS = 1_000;

/**
 * Makes what notices that this process has stood still, as in a machine or a container that was
 * suspended: requests then wait for what others have revoked meanwhile, for a second at most, since
 * tokens are checked also where the database does not answer.
 *
 * @param look reads what others have changed, and does not throw
 * @param wallMs goes on also while a machine is suspended, in which the other clock stands still
 */
export function createCatchUp(
  look: () => Promise<unknown>,
  elapsedMs: () => number,
  wallMs: () => number,
) {
  let lastMs = elapsedMs();
  let lastWallMs = wallMs();
  let looking: Promise<unknown> | undefined;

  /** To be called each BEAT_MS, and for each request; returns what is to be waited for. */
  function beat(): Promise<unknown> | undefined {
    const [nowMs, nowWallMs] = [elapsedMs(), wallMs()];
    if (Math.max(nowMs - lastMs, nowWallMs - lastWallMs) > STILL_MS) {
      const patience = Promise.withResolvers<void>();
      const timer = setTimeout(patience.resolve, PATIENCE_MS);
      const begun = Promise.race([look(), patience.promise]).finally(() => {
        clearTimeout(timer);
        if (looking === begun) looking = undefined;
      });
      looking = begun;
    }
    [lastMs, lastWallMs] = [nowMs, nowWallMs];
    return looking;
  }

  return {
    beat: () => void beat(),
    before: (handle: Handle): Handle => (request) =>
      beat()?.then(() => handle(request)) ?? handle(request),
  };
}
