import type { RESENDS_STARTED } from "../api/resend.ts";
import type { Infer } from "../base/shape.ts";
import { call, get, type Query, Refusal, request } from "./api.ts";
import { ask, openDialog } from "./dialog.ts";
import { type Child, el, fill } from "./element.ts";
import { number, time } from "./format.ts";
import { button, DATE_TIME, failure, message, notify, renew, state } from "./parts.ts";
import type { Delivery } from "./records.ts";
import { arrivals } from "./router.ts";
import { isAccount, serverNow } from "./session.ts";

/** The deliveries that are sent again. */
export interface Wanted {
  /** Their subscription, which the path on a user's own pages needs. */
  readonly subscription?: string;
  /** The time since which every attempt has failed. */
  readonly failingSince?: string | undefined;
  /** More members of the request. */
  readonly selection?: Query;
}

/** What the request has started, and the delivery that was tried first. */
type Begun = Infer<(typeof RESENDS_STARTED)[202]> & { readonly trial?: Delivery | undefined };

const DAY_MS = 86_400_000;
/** The first delivery that failed had been dispatched a little before. */
const EARLIER_MS = 60_000;
const LOOK_MS = 1000;
/** If more than this are to be sent, the user must type their number. */
const MANY = 10_000;

/** Whether another try would not change the error. */
const isFinal = (error: unknown) => error instanceof Refusal && error.status < 500;

const pause = () => new Promise((resolve) => setTimeout(resolve, LOOK_MS));

/**
 * Sends deliveries again: counts them, may try one first, and sends the rest once the outcome of
 * the trial is known. Resolves once the resend has begun or the user has cancelled it, or if the
 * window has left the page of this arrival.
 */
export async function openResend(
  { subscription, failingSince, selection = {} }: Wanted,
  came: number,
): Promise<void> {
  const own = `/consumer/subscription/${subscription}/resend`;
  const [resend, progress, delivery] = isAccount
    ? [own, own, "/consumer/subscription/delivery"]
    : ["/backend/delivery/resend", "/backend/resend", "/backend/delivery"];
  const { status = "failed", since, until } = selection;
  const [what, when] = status === "pending" ? ["waiting", "now"] : [status, "again"];
  const before = (ms: number, than: number) => new Date(than - ms).toISOString();
  await request("GET", "/system/about"); // its response tells the server's time
  if (came !== arrivals) return;
  const dayAgo = before(DAY_MS, serverNow());
  const begun = failingSince && before(EARLIER_MS, Date.parse(failingSince));
  const [from, to] = ["From", "To"].map((name) => el("input", {
    ...DATE_TIME, "aria-label": name, oninput: () => choose(2),
  })) as [HTMLInputElement, HTMLInputElement];
  const given = ({ value }: HTMLInputElement) => value ? new Date(value).toISOString() : undefined;
  const choices: readonly (readonly [name: string, words: Child, range: () => Query])[] = [
    begun ? ["Since it began to fail", `dispatched since ${time(begun)}`, () => ({ since: begun })]
      : ["All", since || until ? "of the time that the list shows" : "that are kept",
        () => ({ since, until })],
    ["Last 24 hours", `since ${time(dayAgo)}`, () => ({ since: dayAgo })],
    ["From … to …", el("span.pair", from, to), () => ({ since: given(from), until: given(to) })],
  ];
  const picks = choices.map((_, at) =>
    el("input", { type: "radio", name: "which", checked: at === 0, onchange: () => choose(at) }));
  const numbers = choices.map(() => el("b"));
  const first = el("input", { type: "checkbox", checked: true, onchange: show });
  const label = el("span");
  const said = el("div", { role: "status" });
  let chosen: Query = {};
  let total = 0;

  const send = (how = {}) =>
    call<Begun>("POST", resend, { ...selection, status, ...chosen, ...how });
  const again = () => `Send ${number(total)} ${when}`;

  function show(): void {
    fill(label, total === 0 ? "Nothing to send"
      : first.checked ? `Try one, then send ${number(total)}` : again());
    label.closest("button")?.toggleAttribute("disabled", total === 0);
  }

  async function choose(at: number): Promise<void> {
    const { since, until = new Date(serverNow()).toISOString() } = choices[at]?.[2]() ?? {};
    const asked = chosen = { since, until }; // the range that is counted is the one that is sent
    total = 0;
    picks.forEach((pick, index) => pick.checked = index === at);
    show();
    fill(label, "Counting…");
    try {
      const { count } = await send({ dry_run: true });
      if (chosen !== asked) return; // a newer count is on its way
      total = count;
      fill(numbers[at] ?? said, number(count));
      fill(said);
    } catch (error) {
      if (chosen !== asked) return;
      fill(said, failure(error));
    }
    show();
  }

  /** Sends one delivery alone, and waits for its outcome while the dialog is open. */
  async function tryOne(): Promise<Begun> {
    const { delivery: tried } = await send({ first: "one" });
    fill(said, message("warn", "One is being sent. Waiting for its outcome…"));
    let trial: Delivery | undefined;
    while (tried && said.isConnected && !trial) {
      const now = await get<Delivery>(`${delivery}/${tried}`).catch((error: unknown) => {
        if (isFinal(error)) throw error;
      });
      if (now && (now.attempt > 0 || now.status !== "pending")) trial = now;
      else await pause();
    }
    const { count } = await send({ dry_run: true });
    return { count, delivery: tried, trial };
  }

  const asked = ask<Begun>({
    title: `Send ${what} deliveries ${when}`,
    body: [
      el("fieldset", el("legend.sr", "Which"),
        choices.map(([name, what], at) => el("label.pick", picks[at],
          el("span", el("b", name), el("span.muted", what)), numbers[at]))),
      el("label.pick.gap", first, el("span", el("b", "Try one first"),
        "The oldest goes alone; the others are offered once its outcome is known.")),
      el("p.small.muted",
        "Oldest first. Each keeps its webhook-id, so a receiver can recognize duplicates."),
      said,
    ],
    action: label,
    act: async () => first.checked ? tryOne() : total <= MANY ? send() : { count: total },
  });
  choose(0);
  const result = await asked;
  if (!result || (result.delivery && !result.trial)) return; // cancelled, or closed too early
  const { trial } = result;
  total = result.count;
  const isWell = trial?.status === "delivered";
  const answer = trial?.last_status ?? trial?.last_error ?? trial?.status;
  const outcome = trial && message(isWell ? "ok" : "warn",
    `The trial ${isWell ? "succeeded" : "failed"}: ${answer}`);
  if (total === 0) return notify(outcome ?? "Nothing is left.");
  const { id } = result.id ? result : await ask({
    title: again(),
    body: outcome,
    action: again(),
    isGrave: !isWell,
    typed: total > MANY ? String(total) : undefined,
    act: send,
  }) ?? result;
  if (id) showProgress(`${progress}/${id}`);
}

/** Shows the progress of a resend until it has ended. */
async function showProgress(path: string): Promise<void> {
  const bar = el("progress", { "aria-label": "Sent again" });
  const [how, far] = [el("span", { role: "status" }), el("span")];
  const close = el("button.btn.primary", "Close");
  const stop = button("Stop", () =>
    call("DELETE", path).catch((error: unknown) => fill(far, failure(error))), { kind: "danger" });
  const opened = openDialog("Sending again", null, [bar, how, far], [stop, close]);
  while (opened.isConnected) {
    try {
      const now = await get<{ state: string; count: number; done: number }>(path);
      [bar.max, bar.value] = [Math.max(1, now.count), now.done];
      renew(how, now.state, () => state(now.state));
      fill(far, ` ${number(now.done)} of ${number(now.count)}`);
      if (now.state !== "running") {
        stop.remove();
        return close.focus();
      }
    } catch (error) {
      if (isFinal(error)) return fill(far, failure(error));
      fill(far, " Not live; it tries again");
    }
    await pause();
  }
}
