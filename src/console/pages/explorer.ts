import { withQuery } from "../api.ts";
import { code } from "../code.ts";
import { listOperations, type Operation } from "../document.ts";
import { ask } from "../asking.ts";
import { type Child, el, fill } from "../element.ts";
import { filters } from "../filters.ts";
import { fieldsOf } from "../form.ts";
import { card, failure, head, message } from "../parts.ts";
import { href, type Place } from "../router.ts";
import { me, site } from "../session.ts";
import { type Answer, app, type Call, showAnswer, snippet } from "./explorer_call.ts";
import { tabs } from "../tabs.ts";

/** The call that is shown: it stays, and its request goes on, while the user filters calls. */
let kept: { id: string; answer: Answer; card: HTMLElement } | undefined;

export async function show({ id, query, signal }: Place) {
  const { pathname } = location;
  const operations = await listOperations();
  const all = [true, false].flatMap((wanted) =>
    operations.filter((each) => isHosted(each) === wanted));
  const chosen = all.find(({ operationId }) => id === "" || operationId === id);
  if (kept?.id !== chosen?.operationId) {
    const answer: Answer = {
      head: el("span.row", { role: "status" }),
      body: el("div", el("p.muted", "Send the call to see it.")),
    };
    kept = chosen && { id: chosen.operationId, answer, card: await callCard(chosen, answer) };
  }
  signal.addEventListener("abort", () => {
    if (location.pathname === pathname) return;
    kept?.answer.over?.abort();
    kept = undefined;
  });
  const calls = el("nav.card.ops", { "aria-label": "Calls" },
    filters(["q"], "Filter calls"), groups(all, chosen, query.get("q") ?? ""));
  requestAnimationFrame(() => {
    const { offsetTop = 0 } = calls.querySelector<HTMLElement>("[aria-current]") ?? {};
    calls.scrollTop = offsetTop - calls.clientHeight / 2;
  });
  return [
    head("API explorer", "Calls this server with this page's token or an app's.",
      el("a.btn", { href: `${site.base}/openapi.json` }, "openapi.json")),
    el("div.trio",
      calls,
      kept ? [kept.card, card("Answer", { end: kept.answer.head }, kept.answer.body)]
        : message("warn", "There is no such call, or you may not see it.")),
  ];
}

const isHosted = ({ tags }: Operation) => tags?.[0] === "hosted";
const verb = (method: string) => el("span", { class: `verb ${method.toLowerCase()}` }, method);

/** The calls that contain this text; those of the server itself are folded. */
function groups(all: readonly Operation[], chosen: Operation | undefined, q: string): Child {
  const nameOf = (each: Operation) =>
    isHosted(each) ? each.path.split("/")[1] : `Built in: ${each.tags?.[0]}`;
  const found = all.filter(({ method, path, summary, operationId }) =>
    `${method} ${path} ${summary} ${operationId}`.toLowerCase().includes(q.toLowerCase()));
  return [...Map.groupBy(found, nameOf)].map(([name, own]) => {
    const open = q !== "" || own.some((each) => each === chosen || isHosted(each));
    return el("details", { open }, el("summary.nav-h", name),
      el("ul", own.map(({ operationId, method, path, summary }) => el("li", el("a.main", {
        href: href("explorer", operationId, { q }),
        "aria-current": operationId === chosen?.operationId ? "true" : undefined,
      }, verb(method), el("span", el("code", path),
        el("span.sub", summary)))))));
  });
}

/** The form of a call, and the same call in other languages. */
async function callCard(operation: Operation, answer: Answer) {
  const { method, path, summary, description, parameters = [], requestBody, security } = operation;
  const ways = (security ?? []).flatMap(({ token }) => (token ? [token] : []));
  const [scopes] = ways;
  const mayMe = !scopes || ways.some((way) => way.every((each) => me.scopes.includes(each)));
  const given = await fieldsOf({
    properties: Object.fromEntries(parameters.map(({ name, description = "", schema }) =>
      [name, { description, ...schema }])),
    required: parameters.filter(({ required }) => required).map(({ name }) => name),
  }, {}, "parameter");
  const [[type = "", { schema = {} } = {}] = []] = Object.entries(requestBody?.content ?? {});
  const members = await fieldsOf(schema);
  const text = el("textarea.mono", { rows: 7, id: "body", spellcheck: "false" }, "{}");
  const hasFields = members.node.hasChildNodes();
  const send = el("button.btn.primary", "Send ", el("kbd", "Ctrl ↵"));
  const lacks = el("p.small.muted", { hidden: mayMe },
    "This page's token lacks the scope: send the call as an app that has it. ",
    el("a", { href: href("apps", "", { do: "first" }) }, "Add app"));
  const secrets = await fieldsOf({
    properties: {
      client_id: { type: "string" },
      client_secret: { type: "string", format: "password" },
    },
    required: ["client_id", "client_secret"],
  }, app, "app");
  const asApp = el("fieldset", secrets.node);
  const whose = ["As me", "As an app…"].map((label, at) =>
    el("button", { type: "button", onclick: () => choose(at === 1) }, label));

  let isApp = !mayMe;

  function choose(wanted: boolean): void {
    isApp = wanted;
    whose.forEach((each, at) => each.ariaPressed = String(isApp === (at === 1)));
    asApp.hidden = asApp.disabled = !isApp;
    send.disabled = !isApp && !mayMe;
  }

  function read(): Call {
    const values = given.read();
    const sent = (where: string) => Object.fromEntries(parameters
      .filter((each) => each.in === where && values[each.name] !== undefined)
      .map(({ name }) => [name, String(values[name])]));
    const full = path.replace(/\{(.*?)\}/g, (whole, name) =>
      values[name] === undefined ? whole : encodeURIComponent(String(values[name])));
    const body = members.read();
    return {
      method,
      path: withQuery(full, sent("query")),
      headers: { ...requestBody && { "Content-Type": type }, ...sent("header") },
      body: !requestBody ? undefined : !hasFields ? text.value
        : type.includes("form") ? String(new URLSearchParams(body as Record<string, string>))
        : JSON.stringify(body),
      scopes,
      isApp,
    };
  }

  async function submit(event: Event): Promise<void> {
    event.preventDefault();
    Object.assign(app, secrets.read());
    const act = () => showAnswer(answer, read);
    if (method === "DELETE") {
      const [typed = method] = Object.values(given.read()).map(String);
      const words = `DELETE ${read().path}`;
      return void await ask({ title: summary ?? path, words, action: "Send", typed, act })
        .catch((error: unknown) => fill(answer.body, failure(error)));
    }
    if (!send.ariaDisabled) {
      send.ariaDisabled = "true"; // unlike `disabled` this keeps the focus
      await act();
      send.ariaDisabled = null;
    }
  }

  const snippets = el("div", tabs(["curl", "fetch", "Python", "Go"].map((name) => [name, () => {
    try {
      return code(snippet(name, read()));
    } catch (error) {
      return String(error); // the JSON is still being typed
    }
  }])));
  const form = el("form", {
    onsubmit: submit,
    // Renders the visible tab anew.
    oninput: () => snippets.querySelector<HTMLElement>("[aria-selected=true]")?.click(),
    onkeydown: ({ key, ctrlKey, metaKey }: KeyboardEvent) =>
      key === "Enter" && (ctrlKey || metaKey) && form.requestSubmit(send),
  },
  el("p", summary), description?.split("\n\n").map((part) =>
    el("p.small.muted", part.split("`").map((words, at) => at % 2 ? el("code", words) : words))),
  given.node, requestBody && (hasFields ? members.node
    : el("div.field", el("label", { for: "body" }, "Body ", el("span.muted", type)), text)),
  scopes ? [lacks, asApp] : el("p.muted", "It needs no token."),
  el("div.spread.acts",
    scopes && el("div.seg", { role: "group", "aria-label": "As whom" }, whose), send));
  choose(isApp);
  return el("section.card",
    el("header", el("h2", verb(method), " ", el("code", path)),
      scopes?.length ? el("span.pill", `scope ${scopes.join(" ")}`) : null),
    el("div.body", form), snippets);
}
