import { call, list, request } from "../api.ts";
import { asking } from "../asking.ts";
import { type Child, el } from "../element.ts";
import { count, duration, wordsOf } from "../format.ts";
import { lettersSwitch } from "../letters_switch.ts";
import { type Thing } from "../names.ts";
import { card, facts, head, isSetting, message, notify, type Problem } from "../parts.ts";
import { site } from "../session.ts";
import { later, table } from "../table.ts";
import { columnsOf } from "../values.ts";

export const show = () => [
  head("Settings", "The configuration of this service, and its state.",
    asking("Back up now", "to 1 file", "The copy will be a file beside the database.",
      () => call<{ file: string; bytes: number }>("POST", "/backend/backup"),
      {
        look: { key: "first" },
        after: ({ file, bytes }) => notify(["Backed up: ", file, `, ${count(bytes, "byte")}`]),
      })),
  el("div.grid",
    card("Before others use it", { wide: "w12" }, later(risks())),
    card("In force", { wide: "w8", padded: false }, later(settings())),
    card("Health", { wide: "w4" }, later(health()), lettersSwitch())),
];

async function risks(): Promise<Child> {
  const { items } = await list<Problem>("/backend/problem");
  const left = items.filter(isSetting);
  return left.length > 0 ? left.map(({ detail }) => message("warn", detail)) : "All is set.";
}

async function settings(): Promise<Child> {
  const { items } = await list<Thing>("/backend/config", { limit: 200 });
  return table(columnsOf(["name", "value"]), items);
}

async function health(): Promise<Child> {
  const { status, parts } = await (await request("GET", "/system/ready")).json();
  return facts(Object.entries({ version: site.version, status, ...parts }).map(([name, value]) =>
    [wordsOf(name.replace(/_seconds$/, "")),
      name.endsWith("_seconds") ? duration(Number(value) * 1000) : String(value)]));
}
