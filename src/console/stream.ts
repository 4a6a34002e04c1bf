import { type Query, request, withQuery } from "./api.ts";
import { el, fill } from "./element.ts";

const FIRST_WAIT_MS = 500;
const LONGEST_WAIT_MS = 10_000;
/** The server sends something every 15 s: what is silent for longer has been cut off unseen. */
const SILENT_MS = 40_000;

/** Gets one event: `delivery`, `problem`, `audit` or `dropped`, with its data. */
type Tell = (topic: string, data: unknown) => void;

/** A mark that says whether what is shown is live. */
export function liveMark() {
  const node = el("span.live");
  const show = (isLive: boolean) =>
    fill(node, isLive ? [el("i"), "Live"] : "Not live; it tries again");
  return { node, show };
}

/**
 * Listens to GET /backend/stream until the signal aborts; `state` gets whether it is heard now.
 * Where it breaks off it is taken up again at the same place; while nobody looks it rests.
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
      // An async iterator of a stream is not in every browser of the last years.
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        hear();
        const blocks = (held + part.value).split("\n\n");
        held = blocks.pop() ?? "";
        for (const block of blocks) lastId = take(block, tell) ?? lastId;
      }
    } catch {
      // What ended it is told by its state.
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

/** Tells one event; returns its id where it has one. */
function take(block: string, tell: Tell): string | undefined {
  const fields = new Map(block.split("\n").map((line) => {
    const at = line.indexOf(":");
    return [line.slice(0, at), line.slice(at + 1).trimStart()];
  }));
  const [topic, data] = [fields.get("event"), fields.get("data")];
  if (topic && data) tell(topic, JSON.parse(data));
  return fields.get("id");
}

/** Waits until the page is seen again, or the signal aborts. */
const seen = (signal: AbortSignal) => new Promise((resolve) => {
  signal.addEventListener("abort", resolve);
  document.addEventListener("visibilitychange", resolve, { signal });
});

/**
 * Does something again and again, while the page is seen, until the signal aborts: so long after
 * the last time was over, since a slow network would hold ever more requests. Where one fails, the
 * next time tells.
 */
export async function every(ms: number, act: () => unknown, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await new Promise((resolve) => setTimeout(resolve, ms));
    try {
      if (!document.hidden && !signal.aborted) await act();
    } catch {}
  }
}
