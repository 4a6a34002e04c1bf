import type { HttpRequest, HttpResponse } from "../base/http_message.ts";

type Handle = (request: HttpRequest) => Promise<HttpResponse>;

/**
 * How often a process reads what others have changed. A revocation, a withdrawn key or a new rate
 * takes effect in all processes within a second, which is enough for two polls and a commit.
 */
export const WATCH_INTERVAL_MS = 400;
/** A longer gap counts as a standstill; with the interval of the watch it makes a second. */
const STILL_MS = 1_000 - WATCH_INTERVAL_MS;
/** How often `beat` is to be called. */
export const BEAT_MS = 200;
const PATIENCE_MS = 1_000;

/**
 * Makes the check whether this process has stood still, for example in a suspended machine or
 * container. Requests then wait until the revocations of other processes have been read, but for a
 * second at most, because tokens are also accepted while the database does not answer.
 *
 * @param look reads what others have changed; never throws
 * @param wallMs a clock that runs while the machine is suspended, as `elapsedMs` does not
 */
export function createCatchUp(
  look: () => Promise<unknown>,
  elapsedMs: () => number,
  wallMs: () => number,
) {
  let lastMs = elapsedMs();
  let lastWallMs = wallMs();
  let looking: Promise<unknown> | undefined;

  /** To be called each BEAT_MS and for each request; returns what the request must await. */
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
