import { list, type Part, type Query } from "../api.ts";
import { el } from "../element.ts";
import type { Page } from "../pages.ts";
import { button, filters, head, since, when } from "../parts.ts";
import { href, pageOf } from "../router.ts";
import { type Column, listTable } from "../table.ts";
import { linkTo, wordsOf } from "../values.ts";

/** An entry of the audit log. */
type Entry = Readonly<
  & Record<"time" | "actor" | "action" | "target", string>
  & Record<"address" | "app", string | null>
>;

const path = "/backend/audit";
const NAMES = ["action", "-action", "actor", "target", "address", "since", "until"];
const TRY = ["action:user.login_failed", "action:key.", "since:24h", "-action:event."];
const MOST_EXPORTED = 1000;

/** What was done to what stands before the dot of an action, where it is no regular past. */
const DONE: Readonly<Record<string, string>> = {
  authenticate_failed: "proved nothing", change_password: "changed the own password",
  code_failed: "code was wrong", limit: "ended: too many", login: "signed in",
  login_failed: "sign-in failed", replay: "ended: its code came twice",
  resend: "sent again", reuse: "ended: its token came twice", rotate_secret: "got a new secret",
  run: "run by hand", setup: "made at the start", stop_resend: "resend stopped",
  token: "token made", unmute: "muted no more", withdraw: "withdrawn",
};

/** What an action says, in words; its own name where there are none. */
function sentence(action: string): string {
  const [noun = "", verb = ""] = action.split(".");
  const regular = `${verb.replace(/e$/, "").replace(/y$/, "i")}ed`;
  const done = DONE[verb] ?? (/^[a-z]+$/.test(verb) && regular);
  return done ? `${wordsOf(noun)} ${done}` : action;
}

const look = (action: string) => /replay|reuse|limit/.test(action) ? "bad"
  : /failed|deny/.test(action) ? "warn" : /login|allow/.test(action) ? "ok" : "idle";

/** The columns of a list of the audit. */
export const AUDIT_COLUMNS: readonly Column<Entry>[] = [
  { name: "Time", class: "mono muted nowrap", cell: ({ time }) => when(time) },
  {
    name: "Who",
    cell: ({ actor, app }) =>
      [linkTo(actor, "main"), app && el("span", { class: "sub" }, "by ", linkTo(app))],
  },
  {
    name: "What",
    class: "wide",
    cell: ({ action, target, actor }) =>
      el("span", { class: `st what ${look(action)}` }, el("span", {}, sentence(action),
        target !== actor && target.split(" ").map((id) => [" · ", linkTo(id)]))),
  },
  { name: "Action", class: "hide-s mono muted", cell: ({ action }) => action },
  { name: "From", class: "hide-s mono muted", cell: ({ address }) => address },
];

export const page: Page = {
  title: "Audit log",
  async show({ query: given }) {
    const all = Object.fromEntries(given);
    const { "-action": not, actor, target, since: from = "", until = "", ...rest } = all;
    const [by, to] = [await idOfUser(actor), await idOfUser(target)];
    const query = { ...rest, not, actor: by, target: to, since: since(from), until: since(until) };
    const empty = "Nothing like it in the time that the log is kept. Take a filter away.";
    const { node } = await listTable<Entry>({ path, query, columns: AUDIT_COLUMNS, empty });
    return [
      head("Audit log", "Every change, sign-in and refusal. It can be read, not edited.",
        button("Export CSV", () => exportCsv(query))),
      filters(NAMES),
      el("p", { class: "row small muted tries" }, "Try", TRY.map((wanted) => {
        const [name = "", value = ""] = wanted.split(":");
        const to = href("audit", "", { ...all, [name]: value });
        return el("a", { href: to, class: "mono" }, wanted);
      })),
      el("section", { class: "card" }, node),
    ];
  },
};

/** A user's id, where the name was given. */
async function idOfUser(text = ""): Promise<string> {
  if (!text || pageOf(text)) return text;
  const { items } = await list<Record<"id" | "username", string>>("/backend/user", { q: text });
  return items.find(({ username }) => username === text)?.id ?? text;
}

/** Saves what is listed, the newest thousand at most. */
async function exportCsv(query: Query): Promise<void> {
  const rows = ["id,time,actor,action,target,address,app"];
  for (let cursor: string | null = ""; cursor !== null && rows.length <= MOST_EXPORTED;) {
    const part: Part<Entry> = await list<Entry>(path, { ...query, limit: 200, cursor });
    rows.push(...part.items.map((entry) => Object.values(entry).map(cell).join()));
    cursor = part.next_cursor;
  }
  const file = new Blob([rows.join("\r\n")], { type: "text/csv" });
  el("a", { href: URL.createObjectURL(file), download: "audit.csv" }).click();
}

/** A text as CSV has it (RFC 4180 §2); what a spreadsheet would take for a formula is none. */
function cell(text: string | null): string {
  return `"${(text ?? "").replace(/^[=+@\t-]/, "'$&").replaceAll('"', '""')}"`;
}
