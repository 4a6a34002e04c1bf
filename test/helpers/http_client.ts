/** A small browser without scripts: cookies, forms, redirects only on demand. */

export interface Button {
  readonly name: string;
  readonly value: string;
  readonly text: string;
}

export interface Input {
  readonly name: string;
  readonly type: string;
  readonly value: string;
  readonly attributes: Readonly<Record<string, string>>;
}

export interface Form {
  /** As written in the page; "" means the page's own address. */
  readonly action: string;
  readonly method: "GET" | "POST";
  /** Every control but the buttons, in order. */
  readonly inputs: readonly Input[];
  /** The values that an unchanged form sends, without buttons. */
  readonly fields: Readonly<Record<string, string>>;
  readonly buttons: readonly Button[];
}

export interface ClientResponse {
  readonly status: number;
  readonly headers: Headers;
  /** The address of the request. */
  readonly url: string;
  readonly text: string;
  /** The absolute address of a Location header. */
  readonly location: string | undefined;
  /** The body as JSON. */
  json(): unknown;
  forms(): readonly Form[];
}

export interface Cookie {
  readonly name: string;
  readonly value: string;
  /** Names in lower case; "" where an attribute has no value. */
  readonly attributes: Readonly<Record<string, string>>;
}

type HeaderFields = Readonly<Record<string, string>>;

export interface Client {
  send(
    method: string,
    path: string,
    options?: { readonly headers?: HeaderFields; readonly body?: string | Uint8Array },
  ): Promise<ClientResponse>;
  get(path: string, headers?: HeaderFields): Promise<ClientResponse>;
  postForm(path: string, fields: HeaderFields, headers?: HeaderFields): Promise<ClientResponse>;
  postJson(path: string, body: unknown, headers?: HeaderFields): Promise<ClientResponse>;
  /** Sends a JSON body; sends none if it is undefined. */
  sendJson(
    method: string,
    path: string,
    body: unknown,
    headers?: HeaderFields,
  ): Promise<ClientResponse>;
  /** Fills in a form of the page and presses the button with this value (or none). */
  submit(
    page: ClientResponse,
    values?: HeaderFields,
    button?: string,
    form?: Form,
  ): Promise<ClientResponse>;
  /** Requests the address in the response's Location. */
  follow(response: ClientResponse): Promise<ClientResponse>;
  /** The cookies kept for the base URL's host. */
  cookies(): readonly Cookie[];
  clearCookies(): void;
}

interface KeptCookie extends Cookie {
  readonly host: string;
  readonly path: string;
  readonly expiresMs: number;
}

const TIMEOUT_MS = 15_000;

export interface ClientOptions {
  /** Returns the headers of each request; a request's own headers override them. */
  readonly headers?: () => HeaderFields;
}

/**
 * Returns a client whose paths are relative to the base URL ("/consumer/login") or absolute
 * addresses. It never follows a redirect by itself; a request ends after 15 seconds.
 */
export function createClient(baseUrl: string, options: ClientOptions = {}): Client {
  let jar: KeptCookie[] = [];

  const resolve = (path: string) => new URL(path.startsWith("/") ? baseUrl + path : path);

  const client: Client = {
    async send(method, path, { headers = {}, body } = {}) {
      const url = resolve(path);
      const sent = new Headers({ ...options.headers?.(), ...headers });
      const cookies = jar.filter((each) => isSent(each, url));
      if (cookies.length > 0 && !sent.has("cookie")) {
        sent.set("cookie", cookies.map(({ name, value }) => `${name}=${value}`).join("; "));
      }
      const fetched = await fetch(url, {
        method,
        headers: sent,
        redirect: "manual",
        signal: AbortSignal.timeout(TIMEOUT_MS),
        ...(body !== undefined && { body: typeof body === "string" ? body : new Uint8Array(body) }),
      });
      const response = await readResponse(url, fetched);
      for (const line of fetched.headers.getSetCookie()) jar = keepCookie(jar, line, url);
      return response;
    },
    get: (path, headers = {}) => client.send("GET", path, { headers }),
    postForm: (path, fields, headers = {}) =>
      client.send("POST", path, {
        headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
        body: new URLSearchParams(fields).toString(),
      }),
    postJson: (path, body, headers = {}) => client.sendJson("POST", path, body, headers),
    sendJson: (method, path, body, headers = {}) =>
      client.send(method, path, body === undefined ? { headers } : {
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify(body),
      }),
    submit(page, values = {}, button, form = page.forms()[0]) {
      if (form === undefined) throw new Error(`no form at ${page.url}:\n${page.text}`);
      const pressed = form.buttons.find(({ value }) => value === button);
      if (button !== undefined && pressed === undefined) throw new Error(`no button ${button}`);
      const isNamed = pressed !== undefined && pressed.name !== "";
      for (const name of Object.keys(values)) {
        if (!form.inputs.some((input) => input.name === name)) throw new Error(`no field ${name}`);
      }
      const fields = {
        ...form.fields,
        ...values,
        ...(isNamed && { [pressed.name]: pressed.value }),
      };
      const target = new URL(form.action === "" ? page.url : form.action, page.url);
      if (form.method === "GET") {
        target.search = new URLSearchParams(fields).toString();
        return client.get(target.href);
      }
      // W3C Fetch Metadata §2.3: browsers send it to trustworthy addresses, and loopback is one.
      const site = target.origin === new URL(page.url).origin ? "same-origin" : "cross-site";
      const headers = { origin: formOrigin(page), "sec-fetch-site": site };
      return client.postForm(target.href, fields, headers);
    },
    follow(response) {
      if (response.location === undefined) throw new Error(`${response.status} without Location`);
      return client.get(response.location);
    },
    cookies: () => jar.filter(({ host }) => host === new URL(baseUrl).hostname),
    clearCookies() {
      jar = [];
    },
  };
  return client;
}

/** Returns the page's forms. It parses only such HTML as this project writes. */
export function parseForms(html: string): readonly Form[] {
  const page = html.replace(/<!--.*?-->/gs, "");
  return [...page.matchAll(/<form\b([^>]*)>(.*?)<\/form>/gis)].map(([, head = "", body = ""]) => {
    const attributes = parseAttributes(head);
    const controls = [...body.matchAll(/<(input|select|textarea|button)\b((?:"[^"]*"|[^">])*)>/gi)];
    const inputs: Input[] = [];
    const buttons: Button[] = [];
    const fields: Record<string, string> = {};
    for (const control of controls) {
      const tag = (control[1] ?? "").toLowerCase();
      const own = parseAttributes(control[2] ?? "");
      const rest = body.slice(control.index + control[0].length);
      const inner = tag === "input" ? "" : rest.slice(0, rest.search(new RegExp(`</${tag}>`, "i")));
      const type = (own["type"] ?? (tag === "input" ? "text" : tag)).toLowerCase();
      const value = valueOf(tag, own, inner);
      const name = own["name"] ?? "";
      if (tag === "button" || type === "submit") {
        const shown = decodeEntities(inner.replace(/<[^>]*>/g, "")).trim();
        buttons.push({ name, value, text: tag === "button" ? shown : value });
        continue;
      }
      inputs.push({ name, type, value, attributes: own });
      const isOff = (type === "checkbox" || type === "radio") && own["checked"] === undefined;
      if (name !== "" && own["disabled"] === undefined && !isOff) fields[name] = value;
    }
    const method = attributes["method"]?.toUpperCase() === "POST" ? "POST" : "GET";
    return { action: attributes["action"] ?? "", method, inputs, fields, buttons };
  });
}

function valueOf(tag: string, own: Readonly<Record<string, string>>, inner: string): string {
  if (tag === "textarea") return decodeEntities(inner.replace(/^\n/, ""));
  if (tag !== "select") return own["value"] ?? (own["type"] === "checkbox" ? "on" : "");
  const found = [...inner.matchAll(/<option\b([^>]*)>([^<]*)/gi)];
  const options = found.map(([, head = "", text = ""]) => {
    const attributes = parseAttributes(head);
    const value = attributes["value"] ?? decodeEntities(text).trim();
    return { value, isSelected: attributes["selected"] !== undefined };
  });
  return (options.find(({ isSelected }) => isSelected) ?? options[0])?.value ?? "";
}

function parseAttributes(text: string): Record<string, string> {
  const attributes: Record<string, string> = {};
  const pattern = /([^\s=/>"']+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s>]+)))?/g;
  for (const match of text.matchAll(pattern)) {
    const [, name = "", double, single, bare] = match;
    attributes[name.toLowerCase()] = decodeEntities(double ?? single ?? bare ?? "");
  }
  return attributes;
}

/** Decodes numeric references and the five named ones that an escaping function writes. */
export function decodeEntities(text: string): string {
  const named: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', apos: "'" };
  return text.replace(/&(#x[0-9a-f]+|#\d+|[a-z]+);/gi, (whole, name: string) => {
    if (!name.startsWith("#")) return named[name] ?? whole;
    const isHex = /^#x/i.test(name);
    return String.fromCodePoint(Number.parseInt(name.slice(isHex ? 2 : 1), isHex ? 16 : 10));
  });
}

/** Fetch, "append a request Origin header": a page that sends no referrer posts as origin null. */
function formOrigin(page: ClientResponse): string {
  const policy = page.headers.get("referrer-policy");
  return policy === "no-referrer" ? "null" : new URL(page.url).origin;
}

async function readResponse(url: URL, response: Response): Promise<ClientResponse> {
  const text = await response.text();
  const location = response.headers.get("location");
  return {
    status: response.status,
    headers: response.headers,
    url: url.href,
    text,
    location: location === null ? undefined : new URL(location, url).href,
    json: () => JSON.parse(text),
    forms: () => parseForms(text),
  };
}

/** RFC 6265 §5.3 and the prefix rules of RFC 6265bis §5.4, as far as a test of one host needs. */
function keepCookie(jar: readonly KeptCookie[], line: string, url: URL): KeptCookie[] {
  const [pair = "", ...parts] = line.split(";").map((part) => part.trim());
  const [name = "", value = ""] = splitOnce(pair);
  const attributes: Record<string, string> = {};
  for (const part of parts) {
    const [key = "", text = ""] = splitOnce(part);
    attributes[key.toLowerCase()] = text;
  }
  const isSecure = attributes["secure"] !== undefined;
  if (isSecure && url.protocol !== "https:") throw new Error(`Secure cookie over http: ${name}`);
  const isHostBound = isSecure && attributes["domain"] === undefined && attributes["path"] === "/";
  if (name.startsWith("__Host-") && !isHostBound) throw new Error(`refused cookie: ${name}`);
  const path = attributes["path"] ?? url.pathname.replace(/(.)\/[^/]*$/, "$1");
  const maxAge = attributes["max-age"];
  const expires = attributes["expires"];
  const expiresMs = maxAge !== undefined
    ? Date.now() + Number(maxAge) * 1_000
    : expires !== undefined ? Date.parse(expires) : Infinity;
  const host = url.hostname;
  const others = jar.filter((c) => !(c.name === name && c.path === path && c.host === host));
  const isDead = expiresMs <= Date.now();
  return isDead ? others : [...others, { name, value, attributes, host, path, expiresMs }];
}

function isSent(cookie: KeptCookie, url: URL): boolean {
  const path = cookie.path.endsWith("/") ? cookie.path : `${cookie.path}/`;
  return cookie.host === url.hostname
    && `${url.pathname}/`.startsWith(path)
    && cookie.expiresMs > Date.now()
    && (cookie.attributes["secure"] === undefined || url.protocol === "https:");
}

function splitOnce(text: string): string[] {
  const at = text.indexOf("=");
  return at === -1 ? [text, ""] : [text.slice(0, at), text.slice(at + 1)];
}
