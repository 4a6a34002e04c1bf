import { type App, newApp } from "./app.ts";
import { BACKEND_READ_SCOPE, BACKEND_SCOPE, CONSOLE_APP, CONSUMER_SCOPE } from "./principal.ts";

/** The path that serves the console, and its redirect URI. */
export const CONSOLE_PATH = "/console";
/** The path that serves the page of a user's own webhooks, and its redirect URI. */
export const WEBHOOKS_PATH = "/account/webhooks";

/**
 * Returns the built-in app of the pages with scripts: a public app with exactly these redirect
 * URIs. It is in no table, so that nobody can change it.
 */
export function consoleApp(redirectUris: readonly string[], url: string): App {
  const scopes = [BACKEND_SCOPE, BACKEND_READ_SCOPE, CONSUMER_SCOPE];
  const wanted = { name: "Console", url, type: "public", scopes } as const;
  return {
    ...newApp(wanted, { id: CONSOLE_APP, createdAtMs: 0 }),
    redirectUris,
    trusted: true,
    requirePkce: true,
  };
}
