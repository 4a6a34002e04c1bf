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

/** The files of the console that browsers load: by name, each in all encodings. */
export interface ConsoleAssets {
  readonly files: ReadonlyMap<string, Readonly<Record<string, Uint8Array>>>;
  /** The files that every page loads first. */
  readonly first: readonly string[];
  /** The version of all files; part of their addresses, so that no cache serves an old file. */
  readonly version: string;
}

const ASSETS = `${CONSOLE_PATH}/assets`;

/** Returns the address of a console file as an absolute path. */
export function assetHref(
  { site: { basePath }, consoleAssets }: Pick<Services, "site" | "consoleAssets">,
  name: string,
): string {
  return `${basePath}${ASSETS}/${consoleAssets().version}/${name}`;
}

type PageServices = Pick<Services, "site" | "issuer" | "consoleAssets" | "consoleUrl">;

/**
 * GET of the console's path, or of that of users' own webhooks, and of all below: one page, whose
 * script shows what the address names. `url` is where the page is served.
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

/** GET of the console's files; 404 for files of another version. */
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

/** Makes the one page for all addresses below a path; `url` is where it is served. */
function consolePage(url: string, path: string, services: PageServices): HttpResponse {
  const { site, issuer, consoleAssets, consoleUrl } = services;
  const href = (name: string) => assetHref(services, name);
  const policy = [
    "default-src 'none'",
    // With a path, since endpoints of modules share this origin.
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

// In CSP3 §2.3.1 a source cannot be an IPv6 literal.
function assetSource(url: string, { basePath }: Services["site"]): string {
  const { origin } = new URL(url);
  return origin.includes("[") ? "'self'" : `${origin}${basePath}${ASSETS}/`;
}
