import type { HttpAnswer } from "../../base/exchange.ts";
import { html } from "../../base/html.ts";
import { pageHeaders } from "./page_headers.ts";
import { pageLayout } from "./page_layout.ts";

export interface ErrorPageInput {
  readonly status: number;
  /** The headline in plain words, e.g. "This sign-in link does not work". */
  readonly title: string;
  /** For the app's developer, e.g. "redirect_uri is not at or below the app's URL". */
  readonly detail: string;
  readonly requestId: string;
}

/**
 * Returns the page for a request that ends here because nobody can be sent anywhere: what happened
 * and what to do in plain words, and the details for whoever mends it.
 */
export function errorPage(input: ErrorPageInput): HttpAnswer {
  const main = html`<h1>${input.title}</h1>
${wordsFor(input.status).map((words) => html`<p class="words">${words}</p>`)}
<h2>Details for the people who run ${isOurs(input.status) ? "this service" : "the app"}</h2>
<dl class="facts">
<dt>What was wrong</dt><dd>${input.detail}</dd>
<dt>Status</dt><dd>${input.status}</dd>
<dt>Request</dt><dd class="id">${input.requestId}</dd>
</dl>`;
  return {
    status: input.status,
    headers: pageHeaders(),
    body: pageLayout(input.title, main),
  };
}

function isOurs(status: number): boolean {
  return status === 429 || status >= 500;
}

function wordsFor(status: number): readonly string[] {
  if (status === 429) {
    return ["This service got too many requests from you.", "Wait a few minutes, then try again."];
  }
  if (status >= 500) {
    return [
      "Something failed on our side. You did nothing wrong.",
      "Try again in a moment. If it keeps happening, pass on the details below.",
    ];
  }
  return [
    "The app that sent you here asked for something that this service cannot accept. " +
      "You did nothing wrong, and nothing was shared with the app.",
    "Go back to the app and start again. If it keeps happening, pass the details below on " +
      "to the people who run the app.",
  ];
}
