import { html } from "../../base/html.ts";
import type { HttpResponse } from "../../base/http_message.ts";
import { prefersHtml } from "../../http/accept.ts";
import { jsonResponse } from "../../http/respond.ts";
import type { Services } from "../../services.ts";
import { type Operation, operation } from "../operation.ts";
import { displayText } from "./display_text.ts";
import { markImage, renderPage, type Site } from "./page_layout.ts";

/**
 * GET /: what this is and where its documents are, as a page for browsers and in JSON for programs;
 * and the mark, also where browsers look for it by themselves.
 */
export function frontDoorOperations(
  { site, issuer, sessions, config: { authorizationServer } }:
    Pick<Services, "site" | "issuer" | "sessions" | "config">,
): Operation[] {
  const base = { method: "GET", access: "public", cors: false } as const;
  const links = {
    openapi: `${issuer}/openapi.json`,
    ...authorizationServer && {
      authorization_server: `${issuer}/.well-known/oauth-authorization-server`,
    },
    protected_resource: `${issuer}/.well-known/oauth-protected-resource`,
    health: `${issuer}/system/health`,
  };
  return [
    operation({
      ...base,
      id: "getFrontDoor",
      path: "/",
      summary: "The front door",
      responses: { 200: "text/html" },
      async handle({ request }) {
        if (!prefersHtml(request.headers.accept)) {
          return jsonResponse(200, { name: site.name, issuer, links }, VARY);
        }
        const { user } = await sessions.open(request);
        return frontDoor(site, issuer, user?.username);
      },
    }),
    ...["/favicon.ico", "/mark.svg"].map((path) =>
      operation({
        ...base,
        id: path,
        path,
        summary: "The mark",
        responses: { 200: "image/svg+xml" },
        handle: () => Promise.resolve({ status: 200, headers: MARK_HEADERS, body: markImage }),
      })
    ),
  ];
}

const VARY = { Vary: "Accept" };

const MARK_HEADERS = {
  "Content-Type": "image/svg+xml",
  "Content-Security-Policy": "default-src 'none'",
  "Cache-Control": "public, max-age=86400",
};

/** The front door as a page; `username` is who is signed in in this browser. */
export function frontDoor(site: Site, issuer: string, username: string | undefined): HttpResponse {
  const at = (path: string) => `${site.basePath}${path}`;
  const main = html`<h1>Access tokens and events</h1>
<p class="lead">This is the API at <code>${issuer}</code>, served by Gatepost.</p>
${username !== undefined && html`<p class="words">In this browser you are signed in as
<bdi class="user">${displayText(username, "?")}</bdi>.</p>`}
<ul class="doors" role="list">
<li><a href="${at("/openapi.json")}">API reference<span>Every call, as an OpenAPI file</span></a>
</li>
</ul>
<p class="note">For programs:
<a href="${at("/.well-known/oauth-protected-resource")}">OAuth metadata</a> ·
<a href="${at("/system/health")}">health</a></p>`;
  return renderPage({ site, status: 200, title: "Start", main, headers: VARY });
}
