import { type App, newApp } from "./app.ts";
import { BACKEND_READ_SCOPE, BACKEND_SCOPE, CONSOLE_APP, CONSUMER_SCOPE } from "./principal.ts";

/** The address that its browser code comes from, and the code of a sign-in goes to. */
export const CONSOLE_PATH = "/console";
/** The same of a person's own webhooks. */
export const WEBHOOKS_PATH = "/account/webhooks";

/**
 * The built-in app of the pages with scripts: public, with these redirect URIs exactly. It is in no
 * table, so that nobody changes it.
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
