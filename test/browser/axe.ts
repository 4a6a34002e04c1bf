/**
 * Checks the pages with axe-core (WCAG 2.2, A and AA) in Chromium: each page of the console, the
 * account and the sign-in, with its dialogs, tabs and details; at 320, 360 and 1280 pixels, light
 * and dark. axe-core is installed into a scratch folder, which is removed again.
 *
 *   node_modules/.bin/node test/browser/axe.ts    prints states and violations; exit 1 with one
 */
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "../../scripts/interop/packages.ts";
import { readOptions } from "../../scripts/read_options.ts";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";
import { startServer } from "../helpers/process.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { authorizeAddress, memberOf, openStage } from "./sign_in_stage.ts";
import { until } from "../helpers/until.ts";

const WIDTHS = [320, 360, 1280];
const OPTIONS = {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"],
  rules: { "target-size": { enabled: true } }, // off by default
};
const READY = "document.readyState === 'complete' && !document.querySelector('[aria-busy=true]')";
/** Addresses that a visit would change something by, or that are no pages. */
const NOT_VISITED = /\/(openapi|asyncapi)\.json|[?&]do=|\/assets\//;

/** What axe-core reports of one rule. */
interface Violation {
  readonly id: string;
  readonly help: string;
  readonly nodes: readonly { readonly target: readonly string[] }[];
}

readOptions({}); // it takes none
const folder = await mkdtemp(join(tmpdir(), "gatepost-axe-"));
const packages = await installPackages(folder, ["axe-core@4"]);
const axe = readFileSync(createRequire(join(folder, "package.json")).resolve("axe-core"), "utf8");
const version = await packages.version("axe-core");
await rm(folder, { recursive: true });

const receiver = await startReceiver();
const stage = await openStage({
  env: {
    GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
    GATEPOST_RESEND_DELAYS: "20ms,20ms,1h",
    GATEPOST_NAME: "Northwind",
  },
});
const browser = await openBrowser({ width: 1280, height: 900 });
let [states, violations] = [0, 0];
try {
  await checkFirstSignIn();
  await checkAll();
} finally {
  await Promise.all([browser.close(), stage.close(), receiver.close()]);
}
console.log(`axe-core ${version}: ${states} pages and states, at ${WIDTHS.join(", ")} px, ` +
  `light and dark: ${violations} violations`);
process.exitCode = violations === 0 ? 0 : 1;

async function checkAll(): Promise<void> {
  const base = stage.server.url;
  const password = await stage.addUser("olga", ["backend", "consumer"]);
  const app = await stage.addApp("desk", { scopes: ["consumer", "backend"] });
  const authorize = authorizeAddress(base, app);
  await fill("olga", password);

  await open(`${base}/`);
  await check("front door");
  await open(`${base}/consloe`);
  await check("no such page");
  await open(`${base}/authorization/authorize?client_id=nobody`);
  await check("error page");
  await open(authorize);
  await check("login");
  await signIn("olga", "not this one");
  await check("login after a wrong password");
  await signIn("olga", password);
  await check("consent");
  await open(`${authorize}&scope=consumer+backend`);
  await check("consent for backend");
  await open(`${base}/authorization/verify`);
  await check("code of a device");
  await browser.type("#user_code", "BCDF-GHJK");
  await browser.click("form .primary");
  await check("wrong code of a device");
  for (const what of ["password", "make"]) {
    await open(`${base}/account?do=${what}`);
    await check(`/account?do=${what}`);
  }
  await crawl(["/account", "/account/webhooks", "/console", "/console/start", "/console/none"]);
  for (const [what, css] of [["palette", "button.find"], ["menu", "[popovertarget]"]] as const) {
    await open(`${base}/console`);
    await browser.execute("document.querySelector(arguments[0]).click()", css);
    await check(what);
  }
  const users = { reader: ["backend:read"], guest: ["orders"] };
  for (const [username, scopes] of Object.entries(users)) {
    const password = await stage.addUser(username, scopes);
    await browser.clearCookies();
    await open(`${base}/console`);
    await signIn(username, password);
    await crawl(["/console"], `${username}: `);
  }
}

/** Checks the page of the first sign-in, where the user chooses a password. */
async function checkFirstSignIn(): Promise<void> {
  const server = await startServer({ entry: SOURCE_ENTRY });
  try {
    await open(`${server.url}/console`);
    await signIn("admin", /with password (\S+)/.exec(server.stderr())?.[1] ?? "");
    await check("first sign-in");
  } finally {
    await server.stop();
  }
}

/** Fills the service with what its pages can show. */
async function fill(username: string, password: string): Promise<void> {
  const client = createClient(stage.server.url);
  const login = await client.postJson("/consumer/login", { username, password });
  const authorization = `Bearer ${memberOf(login.json(), "token")}`;
  const send = async (method: string, path: string, body: object) => {
    const response = await client.sendJson(method, path, body, { authorization });
    if (response.status >= 300) throw new Error(`${method} ${path}: ${response.text}`);
    return response.json();
  };
  const post = (path: string, body: object) => send("POST", path, body);
  for (const [path, status] of [["/ok", 204], ["/down", 503], ["/gone", 410]] as const) {
    receiver.react(path, { kind: "answer", status });
    await post("/consumer/subscription", { event: "order.paid", endpoint: receiver.url + path });
  }
  const paused = { event: "stock.low", endpoint: `${receiver.url}/paused` };
  const id = memberOf(await post("/consumer/subscription", paused), "id");
  await send("PATCH", `/consumer/subscription/${id}`, { status: "paused" });
  for (let count = 0; count < 20; count++) {
    const data = { id: count, lines: [{ sku: "TEA-250" }] };
    await post("/backend/event", { name: count % 5 === 0 ? "stock.low" : "order.paid", data });
  }
  await post("/backend/app", { name: "Phone", url: "http://127.0.0.1", type: "public" });
  await post("/backend/resource", { url: "https://files.example/", scopes: ["consumer"] });
  await post("/backend/key", {});
  await post("/consumer/token", { name: "nightly", scopes: ["consumer"], expires_in: 86_400 });
  const delivered = () => client.get("/backend/delivery?status=delivered", { authorization });
  await until(async () => (await delivered()).text.includes('"id"'), () => "nothing is delivered");
}

/**
 * Visits these paths and all to which they link, one address of each kind, with every dialog, tab
 * and detail of each.
 */
async function crawl(paths: readonly string[], who = ""): Promise<void> {
  const visited = new Set<string>();
  const waiting = [...paths];
  for (let path = waiting.shift(); path !== undefined; path = waiting.shift()) {
    const kind = kindOf(path);
    if (visited.has(kind) || NOT_VISITED.test(path)) continue;
    visited.add(kind);
    await open(stage.server.url + path);
    await check(who + kind);
    waiting.push(...await links());
    await checkParts(path, who + kind);
  }
}

/** The path with `:id` in the place of ids and operations, and whether it has a query. */
function kindOf(path: string): string {
  const { pathname, search } = new URL(path, stage.server.url);
  const kind = pathname.replace(/[a-z]0[0-9a-z]{20,}|(?<=explorer\/)\w+/g, ":id");
  return kind + (search === "" ? "" : "?…");
}

async function links(): Promise<string[]> {
  const found = await browser.execute(`return [...document.querySelectorAll("a[href]")]
    .filter(({ origin, pathname }) => origin === location.origin &&
      /^\\/(console|account)/.test(pathname))
    .map(({ pathname, search }) => pathname + search)`);
  return found as string[];
}

/** Checks what the buttons that ask a question, the tabs and the details of a page bring up. */
async function checkParts(path: string, name: string): Promise<void> {
  const parts = `[...document.querySelectorAll("button, summary")].filter((each) =>
    each.checkVisibility() && (each.matches("[role=tab], [aria-haspopup], summary") ||
      each.textContent.endsWith("…")))`;
  const label = "(each.textContent.trim() || each.ariaLabel)";
  const labels = await browser.execute(`return ${parts}.map((each) => ${label})`) as string[];
  for (const each of new Set(labels)) {
    await open(stage.server.url + path);
    const found = `${parts}.find((each) => ${label} === ${JSON.stringify(each)})`;
    await browser.until(`${found} && (${found}.click(), true)`);
    await check(`${name}, ${each}`);
  }
}

async function open(url: string): Promise<void> {
  await browser.goto(url);
  await browser.until(READY);
}

async function signIn(username: string, password: string): Promise<void> {
  await browser.logIn(username, password);
  await browser.until(READY);
}

/** Runs axe-core on what is shown, in each look, and prints what it finds. */
async function check(name: string): Promise<void> {
  states++;
  console.log(name);
  await browser.until(READY);
  await browser.execute(axe);
  for (const width of WIDTHS) {
    for (const scheme of ["light", "dark"]) {
      await emulate(browser, width, scheme);
      const found = await browser.execute(`return axe.run(${JSON.stringify(OPTIONS)})
        .then(({ violations }) => violations)`);
      for (const { id, help, nodes } of found as Violation[]) {
        violations++;
        const where = nodes.slice(0, 3).map(({ target }) => target.join(" ")).join("\n    ");
        console.log(`  ${width} px, ${scheme}: ${id} (${help})\n    ${where}`);
      }
    }
  }
}

async function emulate(browser: Browser, width: number, scheme: string): Promise<void> {
  await browser.resize(width, 900);
  await browser.prefer({ "prefers-color-scheme": scheme, "prefers-reduced-motion": "reduce" });
}
