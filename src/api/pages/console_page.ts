import { html, moduleScript, renderHtml } from "../../base/html.ts";
import type { HttpResponse } from "../../base/http_message.ts";
import { Problem } from "../../base/problem.ts";
import { takesCoding } from "../../http/accept.ts";
import { CONSOLE_PATH } from "../../oauth/console_app.ts";
import type { Services } from "../../services.ts";
import { version } from "../../version.ts";
import { anyone, type Operation } from "../operation.ts";
import { pageHeaders } from "./page_headers.ts";
import { documentHead, markIcon } from "./page_layout.ts";

/** What browsers load of the console: each file by name, in each encoding. */
export interface ConsoleAssets {
  readonly files: ReadonlyMap<string, Readonly<Record<string, Uint8Array>>>;
  /** Those that every page begins with. */
  readonly first: readonly string[];
  /** Of all of them: part of their addresses, so that no cache ever has an old one. */
  readonly version: string;
}

const ASSETS = `${CONSOLE_PATH}/assets`;

/** The address of a file of the console, from the origin's root on. */
export function assetHref(
  { site: { basePath }, consoleAssets }: Pick<Services, "site" | "consoleAssets">,
  name: string,
): string {
  return `${basePath}${ASSETS}/${consoleAssets().version}/${name}`;
}

type PageServices = Pick<Services, "site" | "issuer" | "consoleAssets" | "consoleUrl">;

/**
 * GET of the console's path, or that of people's own webhooks, and below: one page, whose script
 * shows what the address says; `url` is where it is served.
 */
export function consoleOperations(path: string, url: string, services: PageServices): Operation[] {
  let page: HttpResponse | undefined;
  return [`${path}{/}?`, `${path}/:page`, `${path}/:page/:id`].map((each) =>
    anyone("GET", each, each, "The console", {
      responses: { 200: "text/html" },
      errors: "page",
      handle: () => Promise.resolve(page ??= consolePage(url, path, services)),
    })
  );
}

/** The files of the console's pages; those of another version have gone. */
export function assetOperations({ consoleAssets }: Pick<Services, "consoleAssets">): Operation[] {
  return [`${ASSETS}/:version/:file`, `${ASSETS}/:version/:folder/:file`].map((path) =>
    anyone("GET", path, path, "A file of the console", {
      responses: { 200: "text/javascript" },
      async handle({ request, params: { version: given, folder, file: last = "" } }) {
        const name = folder === undefined ? last : `${folder}/${last}`;
        const { files, version } = consoleAssets();
        const file = given === version ? files.get(name) : undefined;
        if (!file) throw new Problem(404, "not_found", "There is nothing at this path.");
        const accepted = String(request.headers["accept-encoding"] ?? "");
        const encoding = ["br", "gzip"].find((each) => takesCoding(accepted, each));
        return {
          status: 200,
          headers: {
            "Content-Type": name.endsWith(".css") ? "text/css; charset=utf-8" : "text/javascript",
            ...encoding && { "Content-Encoding": encoding },
            "Cache-Control": "public, max-age=31536000, immutable",
            "Cross-Origin-Resource-Policy": "same-origin",
            Vary: "Accept-Encoding",
          },
          body: file[encoding ?? "identity"],
        };
      },
    })
  );
}

/** The page that all addresses below a path have; `url` is where it is served. */
function consolePage(url: string, path: string, services: PageServices): HttpResponse {
  const { site, issuer, consoleAssets, consoleUrl } = services;
  const href = (name: string) => assetHref(services, name);
  const policy = [
    "default-src 'none'",
    // A path, since endpoints of modules have this origin too.
    `script-src ${assetSource(url, site)}`,
    `style-src ${assetSource(url, site)}`,
    "connect-src 'self'",
    "img-src 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ];
  const body = renderHtml(html`<!doctype html>
<html lang="en" dir="ltr">
<head>
${documentHead(site, path === CONSOLE_PATH ? "Console" : "Your webhooks")}
<link rel="stylesheet" href="${href("console.css")}">
${consoleAssets().first.map((name) => html`<link rel="modulepreload" href="${href(name)}">
`)}
</head>
<body data-issuer="${issuer}" data-name="${site.name}" data-host="${site.host}"
 data-console="${consoleUrl === issuer ? `${site.basePath}${CONSOLE_PATH}` : ""}"
 data-base="${site.basePath}" data-version="${version}" data-assets="${href("")}">
<div id="app" class="solo"><p class="brand">${markIcon}<b>${site.name}</b></p>
<p>Opening … This page needs JavaScript, and its own address:
<a href="${url}${path}">${url}${path}</a></p></div>
${moduleScript(href("main.js"))}
</body>
</html>
`);
  const headers = {
    ...pageHeaders(),
    "Content-Security-Policy": policy.join("; "),
    "Cross-Origin-Resource-Policy": "same-origin",
  };
  return { status: 200, headers, body };
}

// CSP3 §2.3.1 names no IPv6 literal.
function assetSource(url: string, { basePath }: Services["site"]): string {
  const { origin } = new URL(url);
  return origin.includes("[") ? "'self'" : `${origin}${basePath}${ASSETS}/`;
}
