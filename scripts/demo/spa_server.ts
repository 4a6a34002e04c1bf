import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

/** The configuration of the single-page app. */
export interface SpaConfig {
  readonly issuer: string;
  readonly clientId: string;
  /** Separated by spaces. */
  readonly scope: string;
}

/** The static files of the single-page app on an origin of their own. */
export interface SpaServer {
  /** The app's URL, with its slash: "http://localhost:40000/". */
  readonly url: string;
  /** Sets the page's configuration; until then `/config.json` is 404. */
  configure(config: SpaConfig): void;
  close(): Promise<void>;
}

const FOLDER = join(import.meta.dirname, "spa");
/** Only these paths are served, so no path needs parsing. */
const FILES: Readonly<Record<string, readonly [name: string, type: string]>> = {
  "/": ["index.html", "text/html; charset=utf-8"],
  "/app.js": ["app.js", "text/javascript; charset=utf-8"],
  "/oauth.js": ["oauth.js", "text/javascript; charset=utf-8"],
  "/style.css": ["style.css", "text/css; charset=utf-8"],
  "/icon.svg": ["icon.svg", "image/svg+xml"],
};

/** Serves the app on the given port, or on a free one. */
export async function startSpaServer(port = 0): Promise<SpaServer> {
  let config: SpaConfig | undefined;

  const find = async (path: string): Promise<readonly [type: string, body: string] | undefined> => {
    if (path === "/config.json" && config) return ["application/json", JSON.stringify(config)];
    const [name, type] = FILES[path] ?? [];
    return name === undefined || type === undefined
      ? undefined
      : [type, await readFile(join(FOLDER, name), "utf8")];
  };

  const server = createServer((request, response) => {
    const fail = (status: number) => void response.writeHead(status).end();
    find((request.url ?? "").replace(/\?.*/s, "")).then((found) => {
      if (found === undefined) return fail(404);
      const [type, body] = found;
      response.writeHead(200, { "Content-Type": type, ...safety(config) }).end(body);
    }, () => fail(500));
  });
  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve());
  });
  const address = server.address();
  const listening = address !== null && typeof address === "object" ? address.port : port;
  return {
    url: `http://localhost:${listening}/`,
    configure(given) {
      config = given;
    },
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** A page that holds tokens must run only its own script, and talk only to Gatepost. */
function safety(config: SpaConfig | undefined): Record<string, string> {
  const policy = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "img-src": "'self'",
    "connect-src": config === undefined ? "'self'" : `'self' ${new URL(config.issuer).origin}`,
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
  };
  return {
    "Content-Security-Policy": Object.entries(policy).map((pair) => pair.join(" ")).join("; "),
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
  };
}
