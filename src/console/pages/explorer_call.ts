import { maxAgeOf, request } from "../api.ts";
import { type Child, el, fill } from "../element.ts";
import { count, duration, number } from "../format.ts";
import { facts, failure, message, signInAgain, state } from "../parts.ts";
import { site } from "../session.ts";
import { cut } from "../tabs.ts";

const ANSWER_WITHIN_MS = 30_000;
/** How many characters of a body are shown at first. */
const SHOWN = 200_000;

/** A request, and the scopes that its token needs; undefined if it needs no token. */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | undefined;
  readonly scopes: readonly string[] | undefined;
  /** Whether the token is an app's, not that of the signed-in user. */
  readonly isApp: boolean;
}

/** The app that sends the calls; it is kept in memory alone. */
export const app = { client_id: "", client_secret: "" };

/** A call as code in another language, which takes the token from the environment. */
export function snippet(language: string, { method, path, headers, body, scopes }: Call): string {
  const [q, url] = [JSON.stringify, site.issuer + path];
  const all = { ...scopes && { Authorization: "Bearer $TOKEN" }, ...headers };
  const shell = (text: string) => `'${text.replaceAll("'", "'\\''")}'`;
  const from = (environment: string, text: string) =>
    text.replace('Bearer $TOKEN"', `Bearer " + ${environment}`);
  const lines: Record<string, readonly string[]> = {
    curl: [
      [`curl -X ${method} ${shell(url)}`,
        ...Object.entries(all).map((pair) => `-H ${shell(pair.join(": "))}`)
          .map((each) => each.replace("$TOKEN'", `'"$TOKEN"`)),
        ...body === undefined ? [] : [`--data-raw ${shell(body)}`]].join(" \\\n  "),
    ],
    fetch: [
      `const response = await fetch(${q(url)}, {`,
      `  method: ${q(method)},`,
      `  headers: ${from("process.env.TOKEN", q(all))},`,
      `  body: ${q(body)},`,
      "});",
      "console.log(response.status, await response.text());",
    ],
    Python: [
      "import os, urllib.request",
      `request = urllib.request.Request(${q(url)}, method=${q(method)},`,
      `    headers=${from('os.environ["TOKEN"]', q(all))},`,
      `    data=${body === undefined ? "None" : `${q(body)}.encode()`})`,
      "print(urllib.request.urlopen(request).read().decode())",
    ],
    Go: [
      "package main",
      `import ("fmt"; "io"; "net/http"; ${scopes ? '"os"; ' : ""}"strings")`,
      "func main() {",
      `\tbody := strings.NewReader(${q(body ?? "")})`,
      `\trequest, _ := http.NewRequest(${q(method)}, ${q(url)}, body)`,
      ...Object.entries(all).map(([name, value]) =>
        `\trequest.Header.Set(${q(name)}, ${from('os.Getenv("TOKEN")', q(value))})`),
      "\tresponse, err := http.DefaultClient.Do(request)",
      "\tif err != nil { panic(err) }",
      "\ttext, _ := io.ReadAll(response.Body)",
      "\tfmt.Println(response.Status, string(text))",
      "}",
    ],
  };
  return (lines[language] ?? []).join("\n");
}

/** Where a response is shown: its status, and the rest. `over` ends the call. */
export interface Answer {
  readonly head: HTMLElement;
  readonly body: HTMLElement;
  over?: AbortController;
}

/** Sends a call, and shows its response and what the call sets off. */
export async function showAnswer(place: Answer, read: () => Call) {
  place.over?.abort();
  const over = place.over = new AbortController();
  fill(place.head, "Waiting …");
  fill(place.body);
  try {
    const { method, path, scopes, isApp, ...rest } = read();
    const token = !scopes ? "" : isApp ? await appToken(scopes) : undefined;
    const fromMs = performance.now();
    const ends = AbortSignal.any([over.signal, AbortSignal.timeout(ANSWER_WITHIN_MS)]);
    const response = await request(method, path, { ...rest, token, signal: ends });
    const body = await response.blob();
    const { status, statusText, headers } = response;
    const trace = el("div");
    fill(place.head, state(status < 400 ? "done" : "failed", `${status} ${statusText}`),
      el("span.small.muted", `${duration(performance.now() - fromMs)} · ${number(body.size)} B`));
    fill(place.body,
      signInAgain(maxAgeOf(response)),
      await bodyOf(body, headers.get("content-type") ?? ""),
      el("details.figures", el("summary", "Headers"), facts([...headers])),
      trace);
    import("./explorer_trace.ts")
      .then(({ follow }) => follow(trace, headers.get("x-request-id") ?? "", over))
      .catch((error: unknown) => fill(trace, failure(error)));
  } catch (error) {
    fill(place.head);
    fill(place.body, message("bad", "There is no answer. ", String(error)));
  }
}

/** Requests a token for the app, with the scopes that a call needs. */
async function appToken(scopes: readonly string[]): Promise<string> {
  const response = await request("POST", "/authorization/token", {
    token: "",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    body: String(new URLSearchParams({
      ...app, grant_type: "client_credentials", scope: scopes.join(" "),
    })),
  });
  const { access_token, error, error_description } = await response.json();
  if (!access_token) throw new Error(error_description ?? error);
  return access_token;
}

async function bodyOf(body: Blob, type: string): Promise<Child> {
  if (!/^text|json|xml|script|form/.test(type)) {
    return el("p", count(body.size, "byte"), type && ` of ${type}`);
  }
  const isJson = /json/.test(type);
  const raw = await body.text();
  return cut(isJson ? indented(raw) : raw, SHOWN, (text) =>
    el("pre", { tabindex: 0, role: "region", "aria-label": "Body" },
      isJson && text.length <= SHOWN ? coloured(text) : text));
}

/** JSON, indented; unchanged if it is not valid, or has numbers that would lose digits. */
function indented(json: string): string {
  try {
    return /[:[,\s]-?\d{16}/.test(json) ? json : JSON.stringify(JSON.parse(json), null, 2);
  } catch {
    return json;
  }
}

/** JSON with its names and its values in two colours. */
function coloured(json: string): Child {
  const parts = json.split(/("(?:\\.|[^"\\])*"|-?\d[\d.eE+-]*|true|false|null)/);
  return parts.map((part, at) =>
    at % 2 ? el("span", { class: parts[at + 1]?.startsWith(":") ? "s" : "n" }, part) : part);
}
