import type { Argument, Command, CommandContext, Option } from "./command.ts";
import { UsageError } from "./failure.ts";
import { column, itemPath, LIST_OPTIONS, printList, printOne, splitNames } from "./listing.ts";
import { formatPairs, formatValue, type Members, visible } from "./table.ts";

const RESOURCE = "/backend/app";
const CLIENT_ID: Argument = {
  name: "CLIENT_ID",
  meaning: "the app's client_id, as app list shows it",
};

const SCOPE: Option = {
  value: '"A B"',
  meaning: "what the app may ask for",
  default: "consumer",
  isRepeatable: true,
};
const GRANT: Option = {
  value: "GRANT",
  meaning: "a grant that the app may use, in place of the default ones: authorization_code, " +
    "refresh_token, client_credentials, password",
  default: "authorization_code, refresh_token and, unless public, client_credentials",
  isRepeatable: true,
};
const REDIRECT_URI: Option = {
  value: "URI",
  meaning: "where a code may be sent, exactly; with none, anywhere at or below the app's URL",
  isRepeatable: true,
};

/** The commands of `gatepost app`. */
export const APP_COMMANDS: readonly Command[] = [
  {
    words: ["app", "add"],
    purpose: "Add an app, with its client_id and secret",
    arguments: [{ name: "NAME", meaning: "what users see when the app asks for their consent" }],
    options: {
      url: {
        value: "URL",
        meaning: "the app's URL: https, or http on localhost, 127.0.0.1 or [::1]",
        isRequired: true,
      },
      public: {
        meaning: "an app that cannot keep a secret, such as a page or a phone's: uses PKCE",
      },
      scope: SCOPE,
      grant: GRANT,
      "redirect-uri": REDIRECT_URI,
      trusted: { meaning: "needs no consent: an app of your own" },
      "resource-server": { meaning: "may introspect the tokens of every app" },
    },
    details: [
      "The secret is shown here only: Gatepost keeps its SHA-256. `app rotate-secret` gives " +
        "another one.",
    ],
    examples: [
      "gatepost app add Shop --url https://shop.example.com/",
      'gatepost app add Wiki --url https://wiki.example.com/ --scope "consumer wiki" --trusted',
      "gatepost app add Phone --url http://127.0.0.1 --public",
    ],
    async run(context) {
      const { values } = context;
      const backend = await context.openBackend();
      const body = {
        name: values.argument("NAME"),
        url: values.text("url"),
        ...values.flag("public") && { type: "public" },
        ...readChange(context),
      };
      const answer = await backend.call("POST", RESOURCE, JSON.stringify(body));
      context.print(answer, (app) => {
        const once = app["client_secret"] === undefined ? "" : " Its secret is shown here only.";
        return `App ${nameOf(app)} has been added.${once}\n\n${showApp(app)}`;
      });
    },
  },
  {
    words: ["app", "list"],
    purpose: "List apps, newest first",
    arguments: [],
    options: LIST_OPTIONS,
    details: ["--json has every field: grants, redirect URIs, flags."],
    examples: ["gatepost app list", "gatepost app list --json"],
    run: (context) =>
      printList(context, RESOURCE, {}, [
        column("NAME", "name", true),
        column("CLIENT_ID", "client_id"),
        column("TYPE", "type"),
        column("STATUS", "status"),
        column("SCOPES", "scopes", true),
        column("URL", "url", true),
      ]),
  },
  {
    words: ["app", "show"],
    purpose: "Show an app",
    arguments: [CLIENT_ID],
    options: {},
    details: ["Its secret cannot be shown: Gatepost keeps the SHA-256."],
    examples: ["gatepost app show a0mhc…"],
    run: (context) => printOne(context, itemPath(RESOURCE, context.values.argument("CLIENT_ID"))),
  },
  {
    words: ["app", "set"],
    purpose: "Change an app",
    arguments: [CLIENT_ID],
    options: {
      name: { value: "NAME", meaning: "what users see" },
      url: { value: "URL", meaning: "the app's URL; redirect URIs that are listed must fit it" },
      scope: { ...SCOPE, default: "as it is" },
      grant: { ...GRANT, default: "as they are" },
      "redirect-uri": { ...REDIRECT_URI, meaning: `${REDIRECT_URI.meaning}; "" lists none` },
      trusted: { meaning: "whether it needs no consent", isNegatable: true },
      "resource-server": {
        meaning: "whether it may introspect the tokens of every app",
        isNegatable: true,
      },
      status: { value: "STATUS", meaning: "active or disabled" },
    },
    details: [
      "What is not given stays as it is; a list that is given replaces the one before. A scope " +
        "that is taken away ends the grants that carry it.",
    ],
    examples: [
      "gatepost app set a0mhc… --redirect-uri https://shop.example.com/callback",
      "gatepost app set a0mhc… --no-trusted",
      "gatepost app set a0mhc… --status active",
    ],
    run: setApp,
  },
  {
    words: ["app", "disable"],
    purpose: "Shut an app out",
    arguments: [CLIENT_ID],
    options: {},
    details: [
      "Its tokens and grants end, and the subscriptions made through it are disabled; a running " +
        "server obeys within a second. `app set CLIENT_ID --status active` lets it in " +
        "again; what has ended stays ended.",
    ],
    examples: ["gatepost app disable a0mhc…"],
    run: (context) => changeApp(context, { status: "disabled" }, "disabled"),
  },
  {
    words: ["app", "rotate-secret"],
    purpose: "Give an app a new secret",
    arguments: [CLIENT_ID],
    options: { revoke: { meaning: "end the old secret at once: it has leaked" } },
    details: ["The new secret is shown here only; the old one stays good for 24 hours."],
    examples: [
      "gatepost app rotate-secret a0mhc…",
      "gatepost app rotate-secret a0mhc… --revoke",
    ],
    async run(context) {
      const { values } = context;
      const isRevoked = values.flag("revoke") ?? false;
      const backend = await context.openBackend();
      const path = itemPath(RESOURCE, values.argument("CLIENT_ID"), "/secret");
      const answer = await backend.call("POST", path, JSON.stringify({ revoke: isRevoked }));
      context.print(answer, (app) => {
        const old = isRevoked ? "no good any more" : "good for another 24 hours";
        return `The old secret is ${old}; the new one is shown here only.\n\n${showSecret(app)}`;
      });
    },
  },
  {
    words: ["app", "delete"],
    purpose: "Remove an app for good",
    arguments: [CLIENT_ID],
    options: {},
    confirm: (values) => `Remove app ${values.argument("CLIENT_ID")} for good?`,
    details: ["`app disable` shuts an app out as well, and can be undone."],
    examples: ["gatepost app delete a0mhc…"],
    async run(context) {
      const id = context.values.argument("CLIENT_ID");
      const backend = await context.openBackend();
      const answer = await backend.call("DELETE", itemPath(RESOURCE, id));
      context.print(answer, () => `App ${id} has been removed.`);
    },
  },
];

async function setApp(context: CommandContext): Promise<void> {
  const { values } = context;
  const change = {
    ...readChange(context),
    name: values.text("name"),
    url: values.text("url"),
    status: values.text("status"),
  };
  if (Object.values(change).every((value) => value === undefined)) {
    throw new UsageError("app set needs something to change, such as --scope or --status");
  }
  await changeApp(context, change, "changed");
}

async function changeApp(context: CommandContext, change: Members, done: string): Promise<void> {
  const backend = await context.openBackend();
  const path = itemPath(RESOURCE, context.values.argument("CLIENT_ID"));
  const answer = await backend.call("PATCH", path, JSON.stringify(change));
  context.print(answer, (app) => `App ${nameOf(app)} has been ${done}.\n\n${showApp(app)}`);
}

/** The members that are given; undefined ones do not go out. */
function readChange({ values }: CommandContext): Members {
  const uris = values.list("redirect-uri");
  return {
    scopes: splitNames(values.list("scope")),
    grants: splitNames(values.list("grant")),
    redirect_uris: uris?.every((uri) => uri === "") ? null : uris,
    trusted: values.flag("trusted"),
    resource_server: values.flag("resource-server"),
  };
}

function nameOf(app: Members): string {
  return visible(formatValue(app["name"]));
}

function showApp(app: Members): string {
  const secret = app["client_secret"];
  return formatPairs([
    ["client_id", app["client_id"]],
    ...secret === undefined ? [] : [["client_secret", secret] as const],
    ["url", app["url"]],
    ["type", app["type"]],
    ["scopes", app["scopes"]],
    ["grants", app["grants"]],
    ["redirect_uris", app["redirect_uris"]],
    ["redirect_rule", app["redirect_rule"]],
    ["trusted", app["trusted"]],
    ["resource_server", app["resource_server"]],
    ["status", app["status"]],
  ]);
}

function showSecret(app: Members): string {
  return formatPairs([
    ["client_id", app["client_id"]],
    ["client_secret", app["client_secret"]],
  ]);
}
