import { listUntil, type Query } from "../api.ts";
import { el } from "../element.ts";
import { filters, since } from "../filters.ts";
import { button, head, notify } from "../parts.ts";
import { pageOf, type Place, refined } from "../router.ts";
import { listTable } from "../table.ts";
import { AUDIT_COLUMNS, type Entry } from "../values.ts";

const path = "/backend/audit";
const NAMES = ["action", "-action", "actor", "target", "address", "since", "until"];
const TRY = ["action:user.login_failed", "action:key.", "since:24h", "-action:event."];
const MOST_EXPORTED = 1000;
const MOST_LOOKED_AT = 2000;

export async function show({ query: given, signal }: Place) {
  const { "-action": not, actor, target, since: from = "", until = "", ...rest } =
    Object.fromEntries(given);
  const [by, to] = [await idOfUser(actor), await idOfUser(target)];
  const query = { ...rest, not, actor: by, target: to, since: since(from), until: since(until) };
  const empty = "No entry matches. Remove a filter to see others.";
  const { node } = await listTable<Entry>({ path, query, columns: AUDIT_COLUMNS, empty, signal });
  return [
    head("Audit log", "Every change, sign-in and refusal. It can be read, not edited.",
      button("Export CSV", () => exportCsv(query))),
    filters(NAMES),
    el("p.row.small.muted.tries", "Try", TRY.map((wanted) => {
      const [name = "", value = ""] = wanted.split(":");
      return el("a", { href: refined({ [name]: value }), class: "mono" }, wanted);
    })),
    el("section.card", node),
  ];
}

/** The id of the user with this name; an id or an unknown name stays as it is. */
async function idOfUser(text = ""): Promise<string> {
  if (!text || pageOf(text)) return text;
  const isMeant = ({ username }: Record<"id" | "username", string>) => username === text;
  const { items } = await listUntil("/backend/user", { q: text }, MOST_LOOKED_AT, isMeant);
  return items.find(isMeant)?.id ?? text;
}

/** Saves the listed entries as CSV, the newest thousand at most. */
async function exportCsv(query: Query): Promise<void> {
  const { items, next_cursor } = await listUntil<Entry>(path, query, MOST_EXPORTED);
  const rows = ["id,time,actor,action,target,address,app",
    ...items.map((entry) => Object.values(entry).map(cell).join())];
  const file = new Blob([rows.join("\r\n")], { type: "text/csv" });
  el("a", { href: URL.createObjectURL(file), download: "audit.csv" }).click();
  if (next_cursor) notify("The newest 1,000. Use the filter until: for older ones.");
}

/** Quotes a text for CSV (RFC 4180 §2), so that a spreadsheet does not take it for a formula. */
function cell(text: string | null): string {
  return `"${(text ?? "").replace(/^[=+@\t-]/, "'$&").replaceAll('"', '""')}"`;
}
