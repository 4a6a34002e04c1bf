import { type Html, html } from "../../base/html.ts";
import type { HttpResponse } from "../../base/http_message.ts";
import { prefersHtml } from "../../http/accept.ts";
import { jsonResponse } from "../../http/respond.ts";
import type { Services } from "../../services.ts";
import { anyone, type Operation } from "../operation.ts";
import { displayText } from "./display_text.ts";
import { icon, markImage, renderPage, type Site } from "./page_layout.ts";

/**
 * GET /: what this service is and where its documents are, as a page for browsers and in JSON for
 * programs. And GET of the mark (the logo), also as /favicon.ico, which browsers ask for.
 *
 * @param isConsoleHere whether the console is served by the same listener
 */
export function frontDoorOperations(
  { site, issuer, sessions, consoleUrl, config: { authorizationServer } }:
    Pick<Services, "site" | "issuer" | "sessions" | "consoleUrl" | "config">,
  isConsoleHere: boolean,
): Operation[] {
  const hasConsole = isConsoleHere && consoleUrl !== undefined; // elsewhere it is not public
  const links = {
    ...hasConsole && { console: `${consoleUrl}/console` },
    ...authorizationServer && { account: `${issuer}/account` },
    openapi: `${issuer}/openapi.json`,
    ...authorizationServer && {
      authorization_server: `${issuer}/.well-known/oauth-authorization-server`,
    },
    protected_resource: `${issuer}/.well-known/oauth-protected-resource`,
    health: `${issuer}/system/health`,
  };
  return [
    anyone("GET", "/", "getFrontDoor", "The front door", {
      responses: { 200: "text/html" },
      async handle({ request }) {
        if (!prefersHtml(request.headers.accept)) {
          return jsonResponse(200, { name: site.name, issuer, links }, VARY);
        }
        const { user } = await sessions.open(request);
        const doors = { hasConsole, hasAccount: authorizationServer };
        return frontDoor(site, issuer, user?.username, doors);
      },
    }),
    ...["/favicon.ico", "/mark.svg"].map((path) =>
      anyone("GET", path, path, "The mark", {
        responses: { 200: "image/svg+xml" },
        handle: () => Promise.resolve({ status: 200, headers: MARK_HEADERS, body: markImage }),
      })
    ),
  ];
}

const HOUSE = html`<path d="M3 9.5 10 3.5l7 6M5 8.5V16h10V8.5M8.5 16v-4h3v4"/>`;
const PEOPLE = html`<path d="M7.5 9.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5ZM2.5 16c.4-2.7
 2.3-4 5-4s4.6 1.3 5 4M12.7 4.3a2.75 2.75 0 0 1 0 5M14.5 12.3c1.7.5 2.7 1.7 3 3.7"/>`;
const CODE = html`<path d="m7 6-4 4 4 4m6-8 4 4-4 4M11.5 4.5l-3 11"/>`;

const VARY = { Vary: "Accept" };

const MARK_HEADERS = {
  "Content-Type": "image/svg+xml",
  "Content-Security-Policy": "default-src 'none'",
  "Cache-Control": "public, max-age=86400",
};

/** Makes the page at `/`; `username` is the user who is signed in with this browser. */
export function frontDoor(
  site: Site,
  issuer: string,
  username: string | undefined,
  { hasConsole, hasAccount }: { readonly hasConsole: boolean; readonly hasAccount: boolean },
): HttpResponse {
  const at = (path: string) => `${site.basePath}${path}`;
  const door = (path: string, drawing: Html, name: string, words: string) =>
    html`<li><a href="${at(path)}">${icon("1.6", drawing)}<b>${name}<span>${words}</span></b></a>
</li>`;
  const main = html`<h1>Access tokens and events</h1>
<p class="lead">This is the API at <code>${issuer}</code>, served by Gatepost.</p>
${username !== undefined && html`<p class="words">In this browser you are signed in as
<bdi class="user">${displayText(username, "?")}</bdi>.</p>`}
<ul class="doors" role="list">
${hasConsole && door("/console", HOUSE, "Console", "For those who run this server")}
${hasAccount && door("/account", PEOPLE, "Your account", "Apps, sessions, webhooks")}
${door("/openapi.json", CODE, "API reference", "Every call, as an OpenAPI file")}
</ul>
<p class="note">For programs:
<a href="${at("/.well-known/oauth-protected-resource")}">OAuth metadata</a> ·
<a href="${at("/system/health")}">health</a></p>`;
  return renderPage({ site, status: 200, title: "Start", main, headers: VARY });
}
