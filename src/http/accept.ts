/**
 * Whether a client prefers a page to JSON, as browsers do by naming `text/html` (RFC 9110 §12.5.1).
 * A client that accepts anything, or names both with equal weights, gets JSON.
 */
export function prefersHtml(accept = ""): boolean {
  const html = weightOf("text/html", accept) ?? 0;
  const any = weightOf("application/*", accept) ?? weightOf("*/*", accept) ?? 0;
  return html > 0 && ["application/json", "application/problem+json"].every((type) => {
    const named = weightOf(type, accept);
    return named === undefined ? html >= any : html > named;
  });
}

/** Whether a client names a content coding with a weight above 0 (RFC 9110 §12.5.3). */
export function takesCoding(acceptEncoding: string, coding: string): boolean {
  return (weightOf(coding, acceptEncoding) ?? 0) > 0;
}

/** Returns the weight of the entry for exactly this type; undefined without one. */
function weightOf(type: string, accept: string): number | undefined {
  const range = accept.toLowerCase().split(",").find((each) => each.split(";")[0]?.trim() === type);
  return range === undefined ? undefined : Number(/;\s*q=([\d.]+)/.exec(range)?.[1] ?? 1);
}
