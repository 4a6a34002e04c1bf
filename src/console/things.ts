import { call, listUntil } from "./api.ts";
import { asking } from "./asking.ts";
import { bodyOf } from "./document.ts";
import { type Child, el, fill, shown } from "./element.ts";
import { filters, noneLike } from "./filters.ts";
import { count, number, wordsOf } from "./format.ts";
import { findIn, idOf, nameOf, NAMES, type Thing } from "./names.ts";
import { button, card, facts, head, state } from "./parts.ts";
import { arrivals, go, href, type Place, refine } from "./router.ts";
import { mayWrite } from "./session.ts";
import { every } from "./stream.ts";
import { type Column, later, listTable, LOOK_MS } from "./table.ts";
import { AUDIT_COLUMNS, columnsOf, valueOf } from "./values.ts";

/** How many of the items that end with a record are counted at most: more would take too long. */
const MOST_COUNTED = 2000;

/** A list of items that belong to a record. */
export interface Related {
  readonly title: string;
  /** Below /backend; `{id}` stands for the record's id. */
  readonly path: string;
  /** The filter whose value is the record's id. */
  readonly by?: string;
  readonly columns: readonly (string | Column<Thing>)[];
  readonly empty: string;
  /** What one item is called, if the items end with the record. */
  readonly ends?: string;
  act?(item: Thing): Child;
  /** The action for all items. */
  end?(item: Thing): Child;
}

/** A kind of record: what its list and the page of one record show. */
export interface Kind {
  readonly words: string;
  /** The path below /backend, which is also what one record is called. */
  readonly path: string;
  /** The members that the list shows; the first is the link. */
  readonly columns: readonly string[];
  readonly filters?: readonly string[];
  readonly hint?: string;
  readonly empty: string;
  /** What a deletion ends. Without it no record can be added, changed or deleted. */
  readonly deletion?: string;
  /** Without these lists a record has no page. */
  readonly related?: readonly Related[];
  /** Whether the whole list is polled. */
  readonly isPolled?: boolean;
  /** The actions beside the heading of the list. */
  top?(): Child;
  /** The actions in each row. */
  act?(item: Thing): Child;
  added?(made: Thing): Promise<unknown>;
  actions?(item: Thing): Child;
  more?(item: Thing, signal: AbortSignal): Child;
}

/** The audit entries of what a record has done, or of what was done to it. */
export const auditBy = (by: "actor" | "target"): Related => ({
  title: by === "actor" ? "Own actions" : "Actions upon it",
  path: "audit",
  by,
  columns: AUDIT_COLUMNS,
  empty: "No entry in the audit log.",
});

/** The subscriptions of a user or an app. */
export const subscriptionsBy = (by: "owner" | "app"): Related => ({
  title: "Subscriptions",
  path: "subscription",
  by,
  columns: [
    "endpoint",
    ["Status", "", ({ status, failing_since }) =>
      state(status === "active" && failing_since ? "failing" : String(status))],
    "event",
    "created_at",
  ],
  empty: "It has no subscriptions.",
  ends: "subscription",
});

/** The grants of a user or an app. */
export const grantsBy = (by: "user" | "app"): Related => {
  const grants: Related = {
    title: "Grants",
    path: "grant",
    by,
    columns: [by === "user" ? "app" : "user", "status", "scopes", "last_used_at", "expires_at"],
    empty: "No app has been allowed.",
    ends: "grant",
    act: revokeGrant,
    end: (item) => asking(
      "Revoke all",
      `grants of ${nameOf(item)}`,
      () => whatEnds([grants], item),
      () => call("POST", "/backend/grant/revoke", { [by]: idOf(item) }),
      { look: { kind: "tiny" } },
    ),
  };
  return grants;
};

/** Shows the list of a kind, or the page of one record. */
export const showKind = (kind: Kind, place: Place, name: string): Promise<Child> =>
  (place.id && kind.related ? showOne : showList)(kind, place, name);

async function showList(kind: Kind, { page, query, signal }: Place, name: string) {
  const { words, path, columns, filters: names = [], hint, empty, deletion, isPolled } = kind;
  const load = async () => (await listTable<Thing>({
    path: `/backend/${path}`,
    query: Object.fromEntries(names.map((name) => [name, query.get(name)])),
    columns: columnsOf(columns, kind.act),
    empty: names.some((name) => query.get(name)) ? noneLike(path) : empty,
  })).node;
  const section = el("section.card", await load());
  const add = async () => {
    const made = await askFields(path);
    if (!made) return;
    await kind.added?.(made);
    go(href(page, idOf(made)));
  };
  // The list does not change while it has the focus: the user may be about to press a button there.
  const look = async () => {
    const node = await load();
    const isRead = node.querySelector("table") && !section.contains(document.activeElement);
    if (isRead) fill(section, node);
  };
  if (isPolled) every(LOOK_MS, look, signal);
  return [
    head(name, words, kind.top?.(),
      deletion && mayWrite() &&
        button(`Add ${path}…`, add, { kind: "primary", picture: "plus", key: "first" })),
    names.length > 0 && filters(names, hint),
    section,
  ];
}

async function showOne(kind: Kind, { page, id, signal }: Place, all: string): Promise<Child> {
  const { path, deletion, related = [] } = kind;
  const item = await findIn(path, id);
  const back = el("a", { href: href(page) }, all);
  if (!item) return head("Nothing has this id", ["It may have been deleted. ", back]);
  const [at, name] = [`/backend/${path}/${id}`, nameOf(item)];
  const ends = () => whatEnds(related, item);
  const edit = async () => await askFields(path, item) && refine({});
  const title = name === id ? wordsOf(path) : name;
  const heading = head(title, [back, " · ", el("code", id)], kind.actions?.(item),
    deletion && mayWrite() && [
      button("Edit…", edit, { key: "edit" }),
      item["status"] !== undefined && statusButton(item, at, ends),
      asking("Delete", name, async () => `${deletion} ${await ends()}`, () => call("DELETE", at),
        { look: { kind: "danger" }, typed: shown(name) }),
    ]);
  const more = kind.more?.(item, signal);
  const isHead = (member: string, value: unknown) =>
    NAMES.includes(member) && (value === id || value === name);
  const pairs = Object.entries(item).filter(([member, value]) => !isHead(member, value))
    .map(([member, value]) => [wordsOf(member), valueOf(member, value)] as const);
  return [heading, el("div.grid",
    card("Facts", { wide: more ? "w6" : "w12" }, facts(pairs)), more,
    related.map(({ title, path, by, columns, empty, act, end }) => {
      const found = listTable<Thing>({
        path: `/backend/${path.replace("{id}", id)}`,
        query: by ? { [by]: id } : {},
        columns: columnsOf(columns, act),
        empty,
        limit: 10,
      });
      return card(title, { wide: "w12", padded: false, end: end?.(item) },
        later(found.then(({ node }) => node)));
    }))];
}

/** Says how many items end with a record, without those that have ended already. */
async function whatEnds(related: readonly Related[], item: Thing): Promise<string> {
  const ending = related.filter(({ ends }) => ends).map(async ({ path, by = "", ends = "" }) => {
    const query = { [by]: idOf(item) };
    const { items, next_cursor } = await listUntil<Thing>(`/backend/${path}`, query, MOST_COUNTED);
    const many = items.filter(({ status }) => status === "active" || status === "paused").length;
    return `${count(many, ends)}${next_cursor ? ` of the first ${number(MOST_COUNTED)}` : ""}`;
  });
  const parts = await Promise.all(ending);
  return parts.length > 0 ? `Will end at once: ${parts.join(", ")}.` : "";
}

/** A button that disables a record, or enables it again. */
export function statusButton(
  item: Thing,
  path: string,
  ends: Parameters<typeof asking>[2],
): Child {
  const isActive = item["status"] === "active";
  const [verb, status] = isActive ? ["Disable", "disabled"] : ["Enable", "active"];
  return asking(verb, nameOf(item), isActive ? ends : "Revoked tokens and grants do not come back.",
    () => call("PATCH", path, { status }), { isGrave: isActive });
}

/** A button that revokes a grant, if the grant is active. */
export const revokeGrant = (grant: Thing): Child => grant["status"] === "active" &&
  asking("Revoke", "1 grant", "Its tokens end at once, and so do the subscriptions made with them.",
    () => call("DELETE", `/backend/grant/${idOf(grant)}`), { isGrave: true });

/**
 * Asks for the members of a new record, or of the given one, and sends those that have changed.
 * Resolves with the response, or with undefined if nothing was sent.
 */
async function askFields(path: string, given?: Thing) {
  const came = arrivals;
  const { askWith, fieldsOf } = await import("./form.ts"); // seldom wanted
  const operation = (given ? "change" : "add") + wordsOf(path);
  const { properties = {}, ...schema } = await bodyOf(operation);
  const { status, ...others } = properties; // the status has a button of its own
  const fields = await fieldsOf({ ...schema, properties: others }, given);
  const at = `/backend/${path}`;
  const act = () => given ? call<Thing>("PATCH", `${at}/${idOf(given)}`, fields.changes())
    : call<Thing>("POST", at, fields.read());
  const title = given ? `Edit ${nameOf(given)}` : `Add ${path}`;
  return askWith(fields, { title, action: given ? "Save" : title, came, act });
}
