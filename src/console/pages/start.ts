import type { WithCallbacks } from "../../api/backend/receiver.ts";
import type { Infer } from "../../base/shape.ts";
import { call, get, list } from "../api.ts";
import { lookOf } from "../delivery.ts";
import { listOperations } from "../document.ts";
import { type Child, el, icon } from "../element.ts";
import { count, duration } from "../format.ts";
import { button, card, head, isSetting, type Problem, renew, state, when } from "../parts.ts";
import type { Attempted, DeclaredEvent, Subscription } from "../records.ts";
import { href, type Place } from "../router.ts";
import { mayWrite, me, serverNow, site } from "../session.ts";
import { every, listen } from "../stream.ts";

type Receiver = Infer<typeof WithCallbacks>;

/** Whether the step is done, its title, what is at its end, and what is below. */
type Step = readonly [isDone: boolean, title: string, end: Child, ...below: Child[]];

const LOOK_MS = 4_000;
/** How long a receiver exists. */
const LIFE_MS = 3_600_000;
const RECEIVER = /\/console\/receiver\/([\w-]+)$/;
const ANSWERS = ["200", "503", "410", "none"];

export async function show({ signal }: Place) {
  const isConsumer = me.scopes.includes("consumer");
  const mayReceive = isConsumer && mayWrite();
  const { items: events } = isConsumer
    ? await list<DeclaredEvent>("/consumer/event", { limit: 100 }) : { items: [] };
  const event = events.length > 0
    ? el("select", { id: "event" }, events.map(({ name }) => el("option", name)))
    : el("input", { id: "event", value: "hello.sent" });
  event.ariaLabel = "Event";
  const [steps, controls, sent] = [el("ol.card.w7"), el("div"), el("div")];
  let watched = "";

  /** A button that changes something and then reads everything again. */
  function act(id: string, label: Child, does: () => Promise<unknown>, kind = "tiny"): Child {
    return mayWrite() && button(label, () => does().then(look), { kind, id });
  }

  const again = () => look().catch(() => {}); // the next call may succeed
  async function look(): Promise<void> {
    const { subscription, receiver, deliveries, ...done } = await find();
    if (signal.aborted) return;
    if (subscription && subscription.id !== watched) {
      watched = subscription.id;
      listen({ topics: "delivery", subscription: watched }, again, signal);
    }
    renew(steps, done, () => showSteps(done));
    const { callbacks, ...told } = receiver ?? {};
    renew(controls, [told, subscription], () => showControls(subscription, receiver));
    renew(sent, [callbacks, deliveries], () => callbacks && showSent(callbacks, deliveries));
  }

  async function subscribe(): Promise<void> {
    const { url: endpoint } = await call<{ url: string }>("POST", "/backend/receiver");
    await call("POST", "/consumer/subscription", { event: event.value, endpoint });
  }

  function showSteps({ hosted, left, isReceived, isDispatched, isApp }: Done): Child {
    const link = (page: string, words: string, query = {}) =>
      el("a.btn.tiny", { href: href(page, "", query) }, words);
    const all: readonly Step[] = [
      [true, "Server set up", el("span.pill.ok", site.version), site.issuer],
      [
        // A reviewer gets only the operations that a reviewer may call, so there is no number.
        hosted.length > 0, "Endpoint modules loaded", mayWrite() && el("span.pill",
          count(hosted.length, "endpoint"), isConsumer && `, ${count(events.length, "event")}`),
        hosted.length > 0 ? el("code", hosted.join(", "))
          : mayWrite() ? "A module is a file in the folder that GATEPOST_ENDPOINTS names."
          : "None that you can call.",
      ],
      [
        isReceived, "Receive your first callback",
        mayReceive &&
          act("use", "Use a built-in receiver", subscribe, isReceived ? "tiny" : "tiny primary"),
        mayReceive && [el("p.row", "It subscribes to ", event),
          "What arrives is shown here. "],
        !isConsumer ? "With scope consumer: " : mayReceive ? "Or " : "You may ",
        el("a", { href: `${site.base}/account/webhooks` }, "subscribe an address of yours"), ".",
      ],
      [
        isDispatched, "Call an endpoint that dispatches", link("explorer", "Open API explorer"),
        "The event is stored with the answer, then delivered. From a terminal it takes ",
        el("a", { href: `${site.issuer}/account?do=make` }, "a personal token"), ".",
      ],
      [isApp, "Add your app", mayWrite() && link("apps", "Add app", { do: "first" }),
        "It gets tokens for the users who sign in to it."],
      [
        left.length === 0, "Before others use it", link("settings", "Settings"),
        left.length > 0 && `Left: ${left.join(", ")}`,
      ],
    ];
    const next = all.findIndex(([isDone]) => !isDone);
    return all.map(([isDone, title, end, ...below], at) =>
      el("li", { class: `check ${isDone ? "done" : at === next ? "now" : ""}` },
        el("span.n", isDone ? [icon("check", 14), el("span.sr", "Done")] : at + 1),
        el("h2", title), end, el("div.more.small.muted", below)));
  }

  function showControls(subscription?: Subscription, receiver?: Receiver): Child {
    if (!receiver || !subscription) {
      return el("p.muted", "None yet. A receiver shows the callbacks that arrive, and " +
        "answers with the status that you choose, so that you can watch one fail and be resent.");
    }
    const { id, event: name, status } = subscription;
    const { example = { hello: "world" } } = events.find((each) => each.name === name) ?? {};
    const dispatch = () => // to this user alone, whoever has subscribed
      call("POST", "/backend/event", { name, data: example, subject: me.id });
    const answers = ANSWERS.map((answer) => {
      const made = act(`answer-${answer}`, answer === "none" ? "no answer" : answer, () =>
        call("PUT", `/backend/receiver/${receiver.id}`, { answer }), "");
      if (made) (made as Element).ariaPressed = String(answer === receiver.answer);
      return made;
    });
    return [
      el("div.row", "It answers",
        el("div.seg", { role: "group", "aria-label": "It answers" }, answers)),
      status === "active" ? act("dispatch", ["Dispatch ", name], dispatch, "primary")
        : el("a", { href: href("subscriptions", id) },
          state(status, `Its subscription is ${status}`)),
      el("p.small.muted", receiver.answer !== "200" &&
        "Choose 200, and the next resend will succeed. ",
        "The receiver is kept until ", when(receiver.expires_at), "."),
    ];
  }

  function showSent(callbacks: Receiver["callbacks"], deliveries: readonly Attempted[]): Child {
    return [
      el("h3", "Deliveries, and how each attempt went"),
      deliveries.map(({ id, status, attempts, next_attempt_at: next }) => [
        el("div.spread", el("a", { href: href("deliveries", id) }, state(status)),
          status !== "pending" && act(id, "Send again", () =>
            call("POST", `/backend/delivery/${id}/resend`, { status }))),
        el("ol.line", attempts.map(({ time, status, error, duration_ms }) =>
          el("li", { class: lookOf(status) },
            when(time), ` ${status ?? error}, ${duration(duration_ms)}`)),
          next && el("li", "once more at ", when(next))),
      ]),
      el("h3", "Callbacks, the last first"),
      callbacks.slice(0, 5).map(({ time, answer, body }) =>
        [when(time), ` answered ${answer}`, el("pre", { tabindex: 0 }, body)]),
    ];
  }

  await look();
  every(LOOK_MS, again, signal);
  return [
    head("Getting started", "This page watches: each step ticks itself off when it has happened.",
      el("a.btn.quiet", { href: href("") }, "Skip to the overview")),
    el("div.grid", steps, card("Built-in receiver", { wide: "w5" }, controls, sent)),
  ];
}

type Done = Omit<Awaited<ReturnType<typeof find>>, "deliveries" | "subscription" | "receiver">;

/** Finds out which steps are done. */
async function find() {
  const [operations, delivered, dispatched, apps, problems, backups, own] = await Promise.all([
    listOperations(),
    list("/backend/delivery", { status: "delivered", limit: 1 }),
    list<{ source?: string }>("/backend/event", { limit: 100 }),
    list("/backend/app", { limit: 1 }),
    list<Problem>("/backend/problem"),
    list("/backend/audit", { action: "backup.create", limit: 1 }),
    list<Subscription>("/backend/subscription", { owner: me.id, limit: 100 }),
  ]);
  const left = problems.items.filter(isSetting).map(({ title }) => title);
  const subscription = own.items.find(({ endpoint, created_at }) =>
    RECEIVER.test(endpoint) && Date.parse(created_at) > serverNow() - LIFE_MS);
  const [, id] = RECEIVER.exec(subscription?.endpoint ?? "") ?? [];
  const [receiver, { items }] = await Promise.all([
    // A restart of the server ends a receiver.
    id ? get<Receiver>(`/backend/receiver/${id}`).catch(() => undefined) : undefined,
    subscription ? list<Attempted>("/backend/delivery", { subscription: subscription.id, limit: 3 })
      : { items: [] },
  ]);
  return {
    hosted: operations.filter(({ tags }) => tags?.includes("hosted"))
      .map(({ method, path }) => `${method} ${path}`),
    isReceived: delivered.items.length > 0,
    isDispatched: dispatched.items.some(({ source }) => source?.includes(" ")),
    isApp: apps.items.length > 0,
    left: backups.items.length > 0 ? left : [...left, "a first backup"],
    subscription,
    receiver,
    deliveries: await Promise.all(items.map(({ id }) => get<Attempted>(`/backend/delivery/${id}`))),
  };
}
