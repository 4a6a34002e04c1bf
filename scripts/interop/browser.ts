/** The user of the browser. */
export interface Visitor {
  readonly username: string;
  readonly password: string;
}

const MAX_STEPS = 8;
const TIMEOUT_MS = 10_000;

/** Opens an address, and fills in the forms that its pages show. */
export type Visit = (address: string, decision?: "allow" | "deny") => Promise<URL>;

/**
 * Makes a browser without scripts, whose user signs in and makes each decision. Its function
 * resolves with the callback address of the app, unvisited, or with the address of the last page.
 */
export function createBrowser(user: Visitor): Visit {
  const cookies = new Map<string, string>();

  async function send(url: URL, form?: URLSearchParams): Promise<Response> {
    const response = await fetch(url, {
      headers: { cookie: [...cookies].map((pair) => pair.join("=")).join("; ") },
      redirect: "manual",
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(form && { method: "POST", body: form }),
    });
    for (const line of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    return response;
  }

  return async (address, decision = "allow") => {
    let url = new URL(address);
    const { origin } = url;
    let response = await send(url);
    for (let step = 0; step < MAX_STEPS; step++) {
      const page = await response.text();
      const location = response.headers.get("location");
      if (location !== null) {
        url = new URL(location, url);
        if (url.origin !== origin) return url;
        response = await send(url);
        continue;
      }
      if (response.status !== 200) {
        throw new Error(`The page answered ${response.status}: ${title(page)}`);
      }
      const form = parseForm(page);
      if (form === undefined) return url;
      url = new URL(form.action, url);
      response = await send(url, fillIn(form.fields, user, decision));
    }
    throw new Error(`The last page does not redirect to the app: ${url.href}`);
  };
}

function fillIn(
  fields: URLSearchParams,
  { username, password }: Visitor,
  decision: string,
): URLSearchParams {
  if (fields.has("password")) {
    fields.set("username", username);
    fields.set("password", password);
  } else {
    fields.set("decision", decision);
  }
  return fields;
}

/** Parses the page's one form: its action, and its fields as sent, without the buttons. */
function parseForm(
  page: string,
): { readonly action: string; readonly fields: URLSearchParams } | undefined {
  const [, head = "", body] = /<form\b([^>]*)>(.*?)<\/form>/s.exec(page) ?? [];
  if (body === undefined) return undefined;
  const inputs = [...body.matchAll(/<input\b([^>]*)>/g)].map(([, text = ""]) => text);
  const fields = inputs.map((text) => [attribute(text, "name"), attribute(text, "value")]);
  return { action: attribute(head, "action"), fields: new URLSearchParams(fields) };
}

function attribute(text: string, name: string): string {
  const value = new RegExp(`\\s${name}="([^"]*)"`).exec(text)?.[1] ?? "";
  const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"' };
  return value.replace(/&(?:#(\d+)|(\w+));/g, (all, code?: string, entity = "") =>
    code === undefined ? entities[entity] ?? all : String.fromCodePoint(Number(code))
  );
}

function title(page: string): string {
  return /<title>([^<]*)/.exec(page)?.[1] ?? page.slice(0, 200);
}
