/**
 * Tells whether a client would rather have a page than JSON, as browsers say by naming `text/html`
 * (RFC 9110 §12.5.1). Who takes anything, or names both alike, gets JSON.
 */
export function prefersHtml(accept = ""): boolean {
  const html = weightOf("text/html", accept) ?? 0;
  const any = weightOf("application/*", accept) ?? weightOf("*/*", accept) ?? 0;
  return html > 0 && ["application/json", "application/problem+json"].every((type) => {
    const named = weightOf(type, accept);
    return named === undefined ? html >= any : html > named;
  });
}

/** Whether a client names a content coding as one that it takes (RFC 9110 §12.5.3). */
export function takesCoding(acceptEncoding: string, coding: string): boolean {
  return (weightOf(coding, acceptEncoding) ?? 0) > 0;
}

/** The weight of what is named so; undefined where nothing is. */
function weightOf(type: string, accept: string): number | undefined {
  const range = accept.toLowerCase().split(",").find((each) => each.split(";")[0]?.trim() === type);
  return range === undefined ? undefined : Number(/;\s*q=([\d.]+)/.exec(range)?.[1] ?? 1);
}
