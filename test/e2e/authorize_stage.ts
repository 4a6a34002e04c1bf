import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import type { Client } from "../helpers/http_client.ts";

/** A server with a user and apps for the authorize page. */
export interface AuthorizeStage {
  readonly gatepost: Gatepost;
  /** A user with scopes `consumer` and `orders`. */
  readonly user: TestUser;
  /** An app that asks for consent, with these scopes and `stock`. */
  readonly app: TestApp;
  /** Another one, with another origin. */
  readonly otherApp: TestApp;
  /** An app that does not ask. */
  readonly trustedApp: TestApp;
  /** Whether the browser gets a code for that app at once. */
  isLoggedIn(browser: Client): Promise<boolean>;
}

/** Starts such a server. */
export async function startAuthorizeStage(
  env: Readonly<Record<string, string>> = {},
): Promise<AuthorizeStage> {
  const gatepost = await startGatepost({ env });
  const scopes = ["consumer", "orders", "stock"];
  const trustedApp = await gatepost.createApp({ scopes, trusted: true });
  return {
    gatepost,
    user: await gatepost.createUser({ scopes: ["consumer", "orders"] }),
    app: await gatepost.createApp({ scopes, name: "Harbour Orders" }),
    otherApp: await gatepost.createApp({ scopes, url: "https://other.example" }),
    trustedApp,
    isLoggedIn: async (browser) => (await gatepost.authorize(browser, trustedApp)).status === 303,
  };
}
