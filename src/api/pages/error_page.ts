import type { HttpResponse } from "../../base/http_message.ts";
import { html } from "../../base/html.ts";
import { displayText } from "./display_text.ts";
import { renderPage, type Site } from "./page_layout.ts";

export interface ErrorPageInput {
  readonly site: Site;
  readonly status: number;
  /** The headline where the status has none of its own, e.g. "This sign-in link does not work". */
  readonly title: string;
  /** For the app's developer, e.g. "redirect_uri is missing or repeated." */
  readonly detail: string;
  /** Facts that explain the detail: a name, and untrusted text. */
  readonly facts?: readonly (readonly [name: string, text: string])[];
  readonly requestId: string;
}

/**
 * Returns the page for a request that fails without a redirect. The page says in plain words what
 * happened and what to do, and has the details for whoever can fix the error.
 */
export function errorPage(input: ErrorPageInput): HttpResponse {
  const { site, status, facts = [] } = input;
  const { title = input.title, words, people = "the app" } = wordsFor(status, site.name);
  const main = html`<h1>${title}</h1>
${words.map((paragraph) => html`<p class="words">${paragraph}</p>`)}
${status === 404 && html`<p class="words"><a href="${site.basePath}/">Go to the start page</a></p>`}
<h2>Details for the people who run ${people}</h2>
<dl class="facts">
<dt>What was wrong</dt><dd>${input.detail}</dd>
${facts.map(([name, text]) => html`<dt>${name}</dt><dd><bdi>${displayText(text, "?")}</bdi></dd>`)}
<dt>Status</dt><dd>${status}</dd>
<dt>Request</dt><dd class="id">${input.requestId}</dd>
</dl>`;
  return renderPage({ site, status, title, main });
}

/** Returns the words of the page; `people` are those who can fix it, if not the app's. */
function wordsFor(status: number, name: string) {
  switch (Math.min(status, 500)) {
    case 403:
      return {
        title: "This page was sent from somewhere else",
        words: ["Nothing was signed in or allowed.", "Go back to the app and start again. If you " +
          "have cookies switched off for this site, allow them."],
      };
    case 404:
      return {
        title: "There is nothing here",
        words: ["The address may be mistyped, or what was here is gone."],
        people: name,
      };
    case 429:
      return {
        words: [`${name} got too many requests from you.`, "Wait a few minutes, then try again."],
        people: name,
      };
    case 500:
      return {
        words: ["Something failed on our side. You did nothing wrong.",
          "Try again in a moment. If it keeps happening, pass on the details below."],
        people: name,
      };
    default:
      return {
        words: [`The app that sent you here asked for something that ${name} cannot accept. ` +
          "You did nothing wrong, and nothing was shared with the app.",
        "Go back to the app and start again. If it keeps happening, pass the details below on " +
          "to the people who run the app."],
      };
  }
}
