import type { toAuditRecord } from "../api/backend/audit.ts";
import { type Child, el } from "./element.ts";
import { ago, wordsOf } from "./format.ts";
import { endpointOf, idOf, linkTo, named, type Thing } from "./names.ts";
import { state, when } from "./parts.ts";
import { href, pageOf } from "./router.ts";
import { mayWrite } from "./session.ts";
import type { Column } from "./table.ts";

const TIME = /^\d{4}-\d\d-\d\dT/;

/** Shows the value of a member; with `isPlain` it has no link of its own. */
export function valueOf(name: string, value: unknown, isPlain = false): Child {
  if (value === null || value === undefined || value === false) return null;
  if (value === true) return "Yes";
  if (Array.isArray(value)) return value.join(" ");
  if (typeof value === "object") return el("code", JSON.stringify(value));
  const text = String(value);
  if (name === "status") return state(text);
  if (name === "error") return el("span.down", text);
  if (name === "created_at") {
    return [when(text), el("span.small.muted", ` ${ago(text)}`)];
  }
  if (name === "endpoint") return endpointOf(text);
  if (TIME.test(text)) return when(text);
  return isPlain && pageOf(text) ? named(text) : linkTo(text);
}

/** Members whose values may be one word of any length; other values are not broken. */
const LONG = ["app", "event", "owner", "scopes"];

/**
 * The columns of these members. The first links to the item's page, if there is one. On small
 * screens the third and later columns each have a line of their own, with their name.
 */
export function columnsOf(
  members: readonly (string | Column<Thing>)[],
  act?: (item: Thing) => Child,
): Column<Thing>[] {
  const columns = members.map((name, at): Column<Thing> => {
    if (typeof name !== "string") return name;
    const look = name === "value" ? "wide" : at > 1 ? "wide named" : "";
    return [wordsOf(name), LONG.includes(name) ? `${look} long` : look, (item) => {
      const page = at === 0 ? pageOf(idOf(item)) : undefined;
      const value = valueOf(name, item[name], Boolean(page)) ?? "–";
      const own = name === "app" ? item["name"] : undefined; // the name of a personal token
      return [page ? el("a.main", { href: href(page, idOf(item)) }, value) : value,
        own ? el("span.sub", String(own)) : null];
    }];
  });
  return act && mayWrite() ? [...columns, ["", "act", act]] : columns;
}

/** An entry of the audit log. */
export type Entry = ReturnType<typeof toAuditRecord>;

/** The words for verbs of actions that do not form their past tense by rule. */
const DONE: Readonly<Record<string, string>> = {
  authenticate_failed: "authentication failed", change_password: "changed their password",
  code_failed: "code was wrong", limit: "ended: too many", login: "signed in",
  login_failed: "sign-in failed", replay: "ended: its code was used twice",
  resend: "sent again", reuse: "ended: its token was used twice", rotate_secret: "got a new secret",
  run: "run by hand", setup: "made at the start", stop_resend: "resend stopped",
  token: "token made", unmute: "unmuted", withdraw: "withdrawn",
};

/** An action in words, or its name if there are no words for it. */
function sentence(action: string): string {
  const [noun = "", verb = ""] = action.split(".");
  const regular = `${verb.replace(/e$/, "").replace(/y$/, "i")}ed`;
  const done = DONE[verb] ?? (/^[a-z]+$/.test(verb) && regular);
  return done ? `${wordsOf(noun)} ${done}` : action;
}

const look = (action: string) => /replay|reuse|limit/.test(action) ? "bad"
  : /failed|deny/.test(action) ? "warn" : /login|allow/.test(action) ? "ok" : "idle";

/** The columns of the audit log. */
export const AUDIT_COLUMNS: readonly Column<Entry>[] = [
  ["Time", "mono muted nowrap", ({ time }) => when(time)],
  ["Who", "", ({ actor, app }) =>
    [linkTo(actor, "main"), app && el("span.sub", "by ", linkTo(app))]],
  ["What", "wide", ({ action, target, actor }) =>
    el("span", { class: `st what ${look(action)}` }, el("span", sentence(action),
      target !== actor && target.split(" ").map((id) => [" · ", linkTo(id)])))],
  ["Action", "hide-s mono muted", ({ action }) => action],
  ["From", "wide named mono muted", ({ address }) => address ?? "–"],
];
