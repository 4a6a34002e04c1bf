import type { Client, ClientPackage } from "../client.ts";
import type { PackageLoader } from "../packages.ts";

/** The part of standardwebhooks 1 that is used here. */
interface StandardWebhooks {
  readonly Webhook: new (secret: string) => {
    verify(body: string, headers: Readonly<Record<string, string>>): unknown;
  };
}

export const STANDARDWEBHOOKS: ClientPackage = { name: "standardwebhooks", major: 1, open };

function open(load: PackageLoader): Client {
  const { Webhook } = load<StandardWebhooks>("standardwebhooks");
  return {
    auth: [],
    // `async` turns its exception into a rejection.
    verifyCallback: async (secret, body, headers) => new Webhook(secret).verify(body, headers),
  };
}
