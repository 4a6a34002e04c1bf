import { call } from "../api.ts";
import { asking, showOnce } from "../asking.ts";
import { code } from "../code.ts";
import { type Child, el, fill } from "../element.ts";
import { duration } from "../format.ts";
import { idOf, nameOf, type Thing } from "../names.ts";
import { card, message } from "../parts.ts";
import { type Place, refine } from "../router.ts";
import { serverNow, site } from "../session.ts";
import { every } from "../stream.ts";
import { auditBy, grantsBy, type Kind, showKind, subscriptionsBy } from "../things.ts";

/** Apps, which have secrets and an example program beside their members. */
const APPS: Kind = {
  words: "OAuth clients, which may ask for tokens.",
  path: "app",
  columns: ["name", "status", "scopes", "type", "owner", "created_at"],
  filters: ["q", "owner", "status"],
  hint: "Name begins with…  owner:  status:disabled",
  empty: "No app yet: one that is added may ask for tokens.",
  deletion: "All of its tokens will be revoked.",
  added: showSecret,
  actions: (app) => app["type"] === "confidential" && !app["jwks"] && newSecret(app),
  more: (app, signal) => card("Use it", { wide: "w6" }, oldSecret(app, signal), code(snippet(app))),
  related: [grantsBy("app"), subscriptionsBy("app"), auditBy("target"), auditBy("actor")],
};

export const show = (place: Place, name: string) => showKind(APPS, place, name);

async function showSecret({ client_secret: secret }: Thing): Promise<unknown> {
  return secret && showOnce("The secret", "It is shown here only.", code(String(secret)));
}

function newSecret(app: Thing): Child {
  const atOnce = el("input", { type: "checkbox", name: "revoke" });
  const path = `/backend/app/${idOf(app)}/secret`;
  return asking("New secret", `for ${nameOf(app)}`, "The old one stays valid for 24 hours.",
    () => call<Thing>("POST", path, { revoke: atOnce.checked }), {
      body: el("label.pick", atOnce, "The old one ends at once"),
      after: async (made) => (await showSecret(made), refine({})),
    });
}

/** Counts down the time for which the old secret is still valid. */
function oldSecret({ old_secret_until: until }: Thing, signal: AbortSignal): Child {
  const left = el("b", { "aria-live": "off" }); // screen readers say it once
  const tick = () => {
    const ms = Date.parse(String(until)) - serverNow();
    fill(left, duration(Math.max(0, ms)));
    return ms > 0;
  };
  if (!tick()) return null;
  every(1000, tick, signal);
  return message("warn", "The old secret is good for ", left, " more.");
}

/** A program with oauth4webapi that gets a token, or prints where a user can allow it one. */
function snippet({ client_id, type, jwks, url, redirect_uris, grants }: Thing): string {
  const insecure = site.issuer.startsWith("http:") ? ", [oauth.allowInsecureRequests]: true" : "";
  const proof = type === "public" ? "None()" : jwks ? "PrivateKeyJwt(key)"
    : "ClientSecretBasic(process.env.CLIENT_SECRET)";
  const [uri = url] = redirect_uris as string[];
  return [
    'import * as oauth from "oauth4webapi";',
    `const issuer = new URL("${site.issuer}");`,
    `const client = { client_id: "${client_id}" };`,
    `const options = { algorithm: "oauth2"${insecure} };`,
    "const found = await oauth.discoveryRequest(issuer, options);",
    "const as = await oauth.processDiscoveryResponse(issuer, found);",
    ...(grants as string[]).includes("client_credentials") ? [
      "const answer = await oauth.clientCredentialsGrantRequest(",
      `  as, client, oauth.${proof}, {}, options);`,
      "console.log(await oauth.processClientCredentialsResponse(as, client, answer));",
    ] : [
      "const verifier = oauth.generateRandomCodeVerifier();",
      "const query = new URLSearchParams({",
      `  ...client, response_type: "code", redirect_uri: ${JSON.stringify(uri)},`,
      "  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),",
      '  code_challenge_method: "S256",',
      "});",
      "console.log(`${as.authorization_endpoint}?${query}`);",
    ],
  ].join("\n");
}
