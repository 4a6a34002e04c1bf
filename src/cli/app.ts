import { AppChange, NewApp, NewAppSecret, USUAL_GRANTS } from "../oauth/app.ts";
import { GRANT_TYPES } from "../oauth/grant_type.ts";
import { APP_LIST } from "../store/apps.ts";
import type { Command, CommandContext, Values } from "./command.ts";
import { readJson } from "./event.ts";
import { findUserId } from "./user.ts";
import { listCommand, type Resource, sendCommand, showCommand } from "./resource.ts";

const APP: Resource = {
  noun: "app",
  argument: {
    name: "CLIENT_ID",
    meaning: "the app's client_id, as app list shows it",
    example: "a0mhc…",
  },
  label: "name",
  columns: ["name*", "client_id", "type", "status", "scopes*", "url*"],
  shown: ["client_id", "client_secret", "*"],
};

const URIS = "an exact redirect URI; without any, every URI at or below the app's URL";
const OWNER = { value: "WHO", find: findUserId };
const WORDS = {
  url: { meaning: "the app's URL: https, or http on localhost, 127.0.0.1 or [::1]" },
  scopes: { meaning: "what the app may request" },
  grants: {
    name: "grant",
    meaning: "a grant type that the app may use, instead of the default ones: " +
      GRANT_TYPES.join(", "),
  },
  redirect_uris: { name: "redirect-uri", value: "URI", isRepeatable: true, read: readUris },
  trusted: { meaning: "an app of your own, which needs no consent" },
  jwks: { value: "JSON", read: readJwks },
  owner: OWNER,
} as const;

export const APP_COMMANDS: readonly Command[] = [
  sendCommand(APP, "add", "Add an app, and print its client_id and secret", {
    details: [
      "The secret is shown here only: Gatepost keeps only its SHA-256. `app rotate-secret` " +
        "makes a new one.",
    ],
    examples: [
      "gatepost app add Shop --url https://shop.example.com/",
      "cat jwks.json | gatepost app add Robot --url https://robot.example.com/ --jwks -",
      'gatepost app add Wiki --url https://wiki.example.com/ --scope "consumer wiki" --trusted',
      "gatepost app add Phone --url http://127.0.0.1 --public",
    ],
    body: NewApp,
    members: {
      ...WORDS,
      name: { argument: "NAME", meaning: "the name that the consent page shows" },
      type: {
        flag: "public",
        meaning: "a public client, such as a browser or phone app: no secret, uses PKCE",
      },
      grants: {
        ...WORDS.grants,
        default: USUAL_GRANTS,
      },
      redirect_uris: { ...WORDS.redirect_uris, meaning: URIS },
    },
  }),
  listCommand(APP, "List apps, newest first", {
    query: APP_LIST.filters,
    members: { owner: OWNER },
    details: ["--json has every field: grants, redirect URIs, flags."],
    examples: ["gatepost app list", "gatepost app list --json"],
  }),
  showCommand(APP, "Show an app", {
    details: ["Its secret cannot be shown: Gatepost keeps only the SHA-256."],
  }),
  sendCommand(APP, "set", "Change an app", {
    details: [
      "Only the given fields change; a list replaces the previous one. Removing a scope revokes " +
        "the grants with that scope.",
    ],
    examples: [
      "gatepost app set a0mhc… --redirect-uri https://shop.example.com/callback",
      "gatepost app set a0mhc… --no-trusted",
      "gatepost app set a0mhc… --status active",
    ],
    body: AppChange,
    members: {
      ...WORDS,
      name: { meaning: "the name that users see" },
      redirect_uris: { ...WORDS.redirect_uris, meaning: `${URIS}; "" removes them all` },
    },
  }),
  sendCommand(APP, "disable", "Disable an app", {
    details: [
      "Its tokens and grants are revoked and its subscriptions disabled; a running server " +
        "follows within a second. `app set CLIENT_ID --status active` enables it again; what was " +
        "revoked stays revoked.",
    ],
  }),
  sendCommand(APP, "rotate-secret", "Give an app a new secret", {
    details: [
      "The new secret is shown here only; the old one stays valid for 24 hours.",
      "Tokens that were issued for the old one stay valid. After a leak, revoke them: " +
        "`gatepost grant revoke --app CLIENT_ID`.",
    ],
    examples: ["gatepost app rotate-secret a0mhc…", "gatepost app rotate-secret a0mhc… --revoke"],
    below: "/secret",
    body: NewAppSecret,
    done(_name, _app, values) {
      const old = values.flag("revoke") ? "no longer valid" : "valid for another 24 hours";
      return `The old secret is ${old}; the new one is shown here only.`;
    },
  }),
  sendCommand(APP, "delete", "Delete an app permanently", {
    details: ["`app disable` also shuts the app out, and can be undone."],
  }),
];

/** Returns the given redirect URIs, which are not split; null if the only one is empty. */
function readUris(values: Values): readonly string[] | null | undefined {
  const uris = values.list("redirect-uri");
  return uris?.every((uri) => uri === "") ? null : uris;
}

function readJwks(values: Values, context: CommandContext): unknown {
  const given = values.text("jwks");
  if (given === "none") return null;
  return given === undefined ? undefined : readJson(given, "the JWK set", context);
}
