import { type Form, parseForms } from "../../test/helpers/http_client.ts";
import type { Story, Told } from "./story.ts";

/** A response with its body parsed. */
export interface VisitorResponse extends Told {
  readonly url: string;
  /** The body as a JSON object; empty if it is none. */
  readonly body: Readonly<Record<string, unknown>>;
  /** The absolute address of a Location header. */
  readonly location: string | undefined;
  /** A page's one form. */
  readonly form: Form | undefined;
}

/** Sends real requests, and prints each with its response. */
export interface Visitor {
  get(path: string, token?: string): Promise<VisitorResponse>;
  postJson(path: string, body: object, token?: string): Promise<VisitorResponse>;
  /** Sends a form; `app` are the client id and secret for HTTP Basic. */
  postForm(
    path: string,
    fields: Readonly<Record<string, string>>,
    app?: readonly [id: string, secret: string],
  ): Promise<VisitorResponse>;
  /** POST without a body. */
  post(path: string, token: string): Promise<VisitorResponse>;
  /** Fills in the page's form and presses the button with this value. */
  submit(
    page: VisitorResponse,
    values: Readonly<Record<string, string>>,
    button?: string,
  ): Promise<VisitorResponse>;
}

type HeaderFields = Readonly<Record<string, string>>;

const TIMEOUT_MS = 10_000;
const FORM = "application/x-www-form-urlencoded";

/** A visitor of one server, with a cookie jar. */
export function createVisitor(baseUrl: string, story: Story): Visitor {
  const cookies = new Map<string, string>();

  /** The address for the reader: only the path, since the server is always the same. */
  const shown = (url: URL) => url.origin === baseUrl ? url.pathname + url.search : url.href;

  async function send(
    method: string,
    path: string,
    headers: HeaderFields,
    body?: object | URLSearchParams,
  ): Promise<VisitorResponse> {
    const url = new URL(path, baseUrl);
    const cookie = [...cookies].map((pair) => pair.join("=")).join("; ");
    const isPage = url.pathname === "/authorization/authorize";
    const sent = isPage && cookie !== "" ? { ...headers, cookie } : headers;
    const { "content-type": _, ...told } = sent;
    story.sent(method, shown(url), told, body);
    const fetched = await fetch(url, {
      method,
      headers: sent,
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body && { body: body instanceof URLSearchParams ? String(body) : JSON.stringify(body) }),
    });
    const response = await readResponse(url, fetched);
    for (const line of fetched.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    story.received(response, tellPage(response));
    return response;
  }

  const bearer = (token?: string): HeaderFields =>
    token === undefined ? {} : { authorization: `Bearer ${token}` };

  return {
    get: (path, token) => send("GET", path, bearer(token)),
    postJson: (path, body, token) =>
      send("POST", path, { "content-type": "application/json", ...bearer(token) }, body),
    postForm(path, fields, app) {
      const headers = { "content-type": FORM };
      // RFC 6749 §2.3.1: both halves are form-encoded first; ids and secrets here need none.
      const basic = app && { authorization: `Basic ${btoa(app.join(":"))}` };
      return send("POST", path, { ...headers, ...basic }, new URLSearchParams(fields));
    },
    post: (path, token) => send("POST", path, bearer(token)),
    submit(page, values, button) {
      const { form } = page;
      if (form === undefined) throw new Error(`There is no form at ${page.url}`);
      const pressed = form.buttons.find(({ value }) => value === button);
      const fields = new URLSearchParams({ ...form.fields, ...values });
      if (pressed !== undefined && pressed.name !== "") fields.set(pressed.name, pressed.value);
      const target = new URL(form.action, page.url);
      return send(form.method, target.href, { "content-type": FORM }, fields);
    },
  };
}

async function readResponse(url: URL, response: Response): Promise<VisitorResponse> {
  const text = await response.text();
  const type = response.headers.get("content-type") ?? "";
  const location = response.headers.get("location");
  const body: unknown = /json/.test(type) ? JSON.parse(text) : {};
  return {
    status: response.status,
    headers: response.headers,
    text,
    url: url.href,
    body: typeof body === "object" && body !== null ? { ...body } : {},
    location: location === null ? undefined : new URL(location, url).href,
    form: /html/.test(type) ? parseForms(text)[0] : undefined,
  };
}

/** Describes a page in a line: its title, its fields and its buttons. */
function tellPage({ text, headers, form }: VisitorResponse): string | undefined {
  if (!/html/.test(headers.get("content-type") ?? "")) return undefined;
  const title = /<title>([^<]*)/.exec(text)?.[1] ?? "";
  const fields = form?.inputs.filter(({ type }) => type !== "hidden").map(({ name }) => name) ?? [];
  const buttons = form?.buttons.map(({ text: label }) => `[${label}]`) ?? [];
  return [`page “${title}”`, ...fields, ...buttons].join("  ");
}
