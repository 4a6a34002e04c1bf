/**
 * Tells whether a client would rather have a page than JSON, as browsers say by naming `text/html`
 * (RFC 9110 §12.5.1). Who takes anything, or both alike, gets JSON.
 */
export function prefersHtml(accept = ""): boolean {
  const html = weightOf("text/html", accept);
  return html > weightOf("application/json", accept) &&
    html > weightOf("application/problem+json", accept);
}

/** Whether a client names a content coding as one that it takes (RFC 9110 §12.5.3). */
export function takesCoding(acceptEncoding: string, coding: string): boolean {
  return weightOf(coding, acceptEncoding) > 0;
}

function weightOf(type: string, accept: string): number {
  const range = accept.toLowerCase().split(",").find((each) => each.split(";")[0]?.trim() === type);
  return range === undefined ? 0 : Number(/;\s*q=([\d.]+)/.exec(range)?.[1] ?? 1);
}
