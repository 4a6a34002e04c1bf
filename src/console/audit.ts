import { el } from "./element.ts";
import { linkTo } from "./names.ts";
import { when } from "./parts.ts";
import type { Column } from "./table.ts";
import { wordsOf } from "./values.ts";

/** An entry of the audit log. */
export type Entry = Readonly<
  & Record<"time" | "actor" | "action" | "target", string>
  & Record<"address" | "app", string | null>
>;

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
  ["Time", "mono muted nowrap", ({ time }) => when(time)],
  ["Who", "", ({ actor, app }) =>
    [linkTo(actor, "main"), app && el("span", { class: "sub" }, "by ", linkTo(app))]],
  ["What", "wide", ({ action, target, actor }) =>
    el("span", { class: `st what ${look(action)}` }, el("span", {}, sentence(action),
      target !== actor && target.split(" ").map((id) => [" · ", linkTo(id)])))],
  ["Action", "hide-s mono muted", ({ action }) => action],
  ["From", "wide named mono muted", ({ address }) => address],
];
