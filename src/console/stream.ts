import { type Query, request, withQuery } from "./api.ts";
import { el, fill } from "./element.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** The server sends something every 15 s: a connection that is silent for so long is broken. */
const SILENT_MS = 40_000;

/** Receives one event: `delivery`, `problem`, `audit` or `dropped`, with its data. */
type Tell = (topic: string, data: unknown) => void;

/** A mark that says whether what is shown is live. */
export function liveMark() {
  const node = el("span.live");
  const show = (isLive: boolean) =>
    fill(node, isLive ? [el("i"), "Live"] : "Not live; it tries again");
  return { node, show };
}

/**
 * Listens to GET /backend/stream until the signal aborts; `state` gets whether it is connected.
 * After an interruption the stream resumes at the same place. It pauses while the page is hidden.
 */
export async function listen(
  query: Query,
  tell: Tell,
  signal: AbortSignal,
  state: (isLive: boolean) => unknown = () => {},
) {
  let lastId = "";
  let waitMs = FIRST_WAIT_MS;
  const path = withQuery("/backend/stream", query);
  while (!signal.aborted) {
    const over = new AbortController();
    const leave = () => document.hidden && over.abort();
    document.addEventListener("visibilitychange", leave, { signal: over.signal });
    let silence: ReturnType<typeof setTimeout> | undefined;
    const hear = () => {
      clearTimeout(silence);
      silence = setTimeout(() => over.abort(), SILENT_MS);
    };
    try {
      const headers: Record<string, string> = lastId ? { "last-event-id": lastId } : {};
      const ends = AbortSignal.any([signal, over.signal]);
      hear();
      const answer = await request("GET", path, { headers, signal: ends });
      if (!answer.ok || !answer.body) throw new Error(`status ${answer.status}`);
      state(true);
      waitMs = FIRST_WAIT_MS;
      let held = "";
      // Not every browser that is supported has the async iterator of a stream.
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        hear();
        const blocks = (held + part.value).split("\n\n");
        held = blocks.pop() ?? "";
        for (const block of blocks) lastId = take(block, tell) ?? lastId;
      }
    } catch {
      // The page learns of the interruption by `state`.
    } finally {
      over.abort();
      clearTimeout(silence);
    }
    if (signal.aborted) return;
    state(false);
    const timeout = document.hidden ? [] : [AbortSignal.timeout(waitMs)];
    await seen(AbortSignal.any([signal, ...timeout]));
    waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
  }
}

/** Passes one event on; returns its id if it has one. */
function take(block: string, tell: Tell): string | undefined {
  const fields = new Map(block.split("\n").map((line) => {
    const at = line.indexOf(":");
    return [line.slice(0, at), line.slice(at + 1).trimStart()];
  }));
  const [topic, data] = [fields.get("event"), fields.get("data")];
  if (topic && data) tell(topic, JSON.parse(data));
  return fields.get("id");
}

/** Waits until the page is visible again, or the signal aborts. */
const seen = (signal: AbortSignal) => new Promise((resolve) => {
  signal.addEventListener("abort", resolve);
  document.addEventListener("visibilitychange", resolve, { signal });
});

/**
 * Calls `act` again and again while the page is visible, until the signal aborts. The pause begins
 * at the end of a call, since on a slow network requests would pile up. An error is ignored, since
 * the next call may succeed.
 */
export async function every(ms: number, act: () => unknown, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, ms));
    try {
      if (!document.hidden && !signal.aborted) await act();
    } catch {}
  }
}
