import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, openSession, type SessionOptions } from "./chromium.ts";
import { until } from "./until.ts";
import { asRecord, startDriver, WebDriverError } from "./webdriver.ts";

export interface BrowserOptions extends SessionOptions {
  /** The page's size in CSS pixels. */
  readonly width: number;
  readonly height: number;
  /** false: pages run no script. */
  readonly javascript?: boolean;
}

export interface BrowserCookie {
  readonly name: string;
  readonly value: string;
  readonly path: string;
  readonly secure: boolean;
  readonly httpOnly: boolean;
  readonly sameSite: string;
}

/** One page in a real Chromium. Methods with a selector wait until an element matches. */
export interface Browser {
  goto(url: string): Promise<void>;
  /** Waits until a matching element is there and returns its WebDriver id. */
  find(css: string): Promise<string>;
  /** How many elements match now. */
  count(css: string): Promise<number>;
  /** Clicks the first such element; with `words`, the first visible one with exactly this text. */
  click(css: string, words?: string): Promise<void>;
  /** Replaces the content of a field by these keystrokes. */
  type(css: string, text: string): Promise<void>;
  /** Sends keys to whatever has the focus: "\uE004" Tab, "\uE007" Enter, "\uE00D" Space. */
  press(keys: string): Promise<void>;
  /** The visible text. */
  text(css: string): Promise<string>;
  attribute(css: string, name: string): Promise<string | undefined>;
  /** The name a screen reader says. */
  label(css: string): Promise<string>;
  url(): Promise<string>;
  /** Waits until the address matches, and returns it. */
  waitForUrl(pattern: RegExp): Promise<string>;
  title(): Promise<string>;
  source(): Promise<string>;
  cookies(): Promise<readonly BrowserCookie[]>;
  /** Removes the cookies of every site. */
  clearCookies(): Promise<void>;
  /** Runs the body of a function in the page and returns its result. */
  execute(script: string, ...args: unknown[]): Promise<unknown>;
  /** Clicks the button with this label, in a dialog unless a selector names another place. */
  clickButton(label: string, root?: string): Promise<void>;
  /** Fills in the login page and sends it. */
  logIn(username: string, password: string): Promise<void>;
  /** The size of the window in CSS pixels; a window that is narrower than 600 is a phone's. */
  resize(width: number, height: number, mobile?: boolean): Promise<void>;
  /** The user's preferences, e.g. `{ "prefers-color-scheme": "dark" }`; others become default. */
  prefer(features: Readonly<Record<string, string>>): Promise<void>;
  /** Waits until an expression of the page is true. */
  until(expression: string): Promise<void>;
  /** One command of the DevTools protocol. */
  devtools(command: string, params: object): Promise<unknown>;
  /** Writes a PNG of the whole page. */
  screenshot(file: string): Promise<void>;
  /** Warnings and errors of the console since the last call: scripts, CSP, failed loads. */
  consoleErrors(): Promise<readonly string[]>;
  back(): Promise<void>;
  /** Opens a window behind this one, and waits for its title; the function returned closes it. */
  openWindow(url: string, title: RegExp): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

/** W3C WebDriver §12.1, the web element identifier. */
const ELEMENT = "element-6066-11e4-a52e-4f735466cecf";

/** Starts chromedriver and a Chromium with a fresh profile; `close()` ends and removes it all. */
export async function openBrowser(options: BrowserOptions): Promise<Browser> {
  const profile = await mkdtemp(join(tmpdir(), "gatepost-browser-"));
  const driver = await startDriver();
  const removeAll = async () => {
    await driver.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
  };
  const session = await openSession(driver, profile, options).catch(async (error: unknown) => {
    await removeAll();
    throw error;
  });
  const close = async () => {
    // A session that does not respond is ended below, and must not delay what else a test closes.
    await session.command("DELETE", "").catch(() => {});
    session.end();
    await removeAll();
  };
  const browser = createBrowser(session.command, close);
  try {
    await emulate(browser, options);
    return browser;
  } catch (error) {
    await close();
    throw error;
  }
}

async function emulate(browser: Browser, options: BrowserOptions): Promise<void> {
  const { width, height, javascript = true } = options;
  await browser.resize(width, height);
  await browser.prefer({ "prefers-color-scheme": "light" });
  await browser.devtools("Emulation.setScriptExecutionDisabled", { value: !javascript });
  // Some versions give a window without a screen no focus of their own accord.
  await browser.devtools("Emulation.setFocusEmulationEnabled", { enabled: true });
}

function createBrowser(command: Command, close: () => Promise<void>): Browser {
  const get = (path: string) => command("GET", path);
  const post = (path: string, body: object = {}) => command("POST", path, body);

  const findAll = async (css: string): Promise<string[]> => {
    const found = await post("/elements", { using: "css selector", value: css });
    return Array.isArray(found) ? found.map((each) => String(asRecord(each)[ELEMENT])) : [];
  };

  const findSaying = async (css: string, words: string): Promise<string | undefined> => {
    const script = "return [...document.querySelectorAll(arguments[0])].find((each) => " +
      "each.offsetParent && each.textContent.trim() === arguments[1])";
    const found = await browser.execute(script, css, words);
    return found === null ? undefined : String(asRecord(found)[ELEMENT]);
  };

  const browser: Browser = {
    async goto(url) {
      await post("/url", { url });
    },
    find: (css) =>
      waitFor(`an element ${css}`, async () => (await findAll(css))[0], browser.url),
    count: async (css) => (await findAll(css)).length,
    async click(css, words) {
      await waitFor(`an element ${css} ${words ?? ""} to click`, async () => {
        const element = words === undefined
          ? (await findAll(css))[0]
          : await findSaying(css, words);
        if (element === undefined) return undefined;
        await post(`/element/${element}/click`);
        return element;
      }, browser.url);
    },
    async type(css, text) {
      const element = await browser.find(css);
      await post(`/element/${element}/clear`);
      await post(`/element/${element}/value`, { text });
    },
    async press(keys) {
      const actions = [...keys].flatMap((value) => [
        { type: "keyDown", value },
        { type: "keyUp", value },
      ]);
      await post("/actions", { actions: [{ type: "key", id: "keyboard", actions }] });
    },
    // Found and read together, as in a click, since the page may remove the element in between.
    text: (css) =>
      waitFor(`the text of ${css}`, async () => {
        const [element] = await findAll(css);
        return element === undefined ? undefined : String(await get(`/element/${element}/text`));
      }, browser.url),
    async attribute(css, name) {
      const value = await get(`/element/${await browser.find(css)}/attribute/${name}`);
      return value === null ? undefined : String(value);
    },
    label: async (css) => String(await get(`/element/${await browser.find(css)}/computedlabel`)),
    url: async () => String(await get("/url")),
    waitForUrl: (pattern) =>
      waitFor(`an address like ${pattern}`, async () => {
        const url = await browser.url();
        return pattern.test(url) ? url : undefined;
      }, browser.url),
    title: async () => String(await get("/title")),
    source: async () => String(await get("/source")),
    cookies: async () => listOf(await get("/cookie")).map(readCookie),
    async clearCookies() {
      await browser.devtools("Network.clearBrowserCookies", {});
    },
    execute: (script, ...args) => post("/execute/sync", { script, args }),
    async clickButton(label, root = "dialog[open]") {
      const script = "return [...document.querySelectorAll(arguments[0] + " +
        "' button:enabled:not([aria-disabled])')]" +
        ".some((each) => each.textContent === arguments[1] && (each.click(), true))";
      await until(() => browser.execute(script, root, label), () => `button ${label}`);
    },
    async logIn(username, password) {
      await browser.type("#username", username);
      await browser.type("#password", password);
      await browser.click("form [type=submit]");
    },
    async resize(width, height, mobile = width < 600) {
      const size = { width, height, deviceScaleFactor: 1, mobile };
      await browser.devtools("Emulation.setDeviceMetricsOverride", size);
    },
    async prefer(given) {
      const features = Object.entries(given).map(([name, value]) => ({ name, value }));
      await browser.devtools("Emulation.setEmulatedMedia", { features });
    },
    async until(expression) {
      await until(
        () => browser.execute(`return Boolean(${expression})`),
        async () => `${expression}\n${await browser.text("body")}`,
      );
    },
    devtools: (cmd, params) => post("/goog/cdp/execute", { cmd, params }),
    async screenshot(file) {
      const shot = asRecord(await browser.devtools("Page.captureScreenshot", {
        format: "png",
        captureBeyondViewport: true,
      }));
      await writeFile(file, Buffer.from(String(shot["data"]), "base64"));
    },
    async consoleErrors() {
      return listOf(await post("/se/log", { type: "browser" }))
        .filter((entry) => entry["level"] === "SEVERE" || entry["level"] === "WARNING")
        .map((entry) => String(entry["message"]))
        .filter((message) => !message.startsWith("chrome://")); // from Chromium's own pages
    },
    async back() {
      await post("/back");
    },
    async openWindow(url, title) {
      const { targetId } = asRecord(await browser.devtools("Target.createTarget", { url }));
      await until(async () => {
        const { targetInfos } = asRecord(await browser.devtools("Target.getTargets", {}));
        const { title: now } = listOf(targetInfos).find((each) => each["targetId"] === targetId) ??
          {};
        return title.test(String(now));
      }, () => `a window of ${title}`);
      return async () => {
        await browser.devtools("Target.closeTarget", { targetId });
        await browser.devtools("Page.bringToFront", {});
      };
    },
    close,
  };
  return browser;
}

async function waitFor<T>(
  what: string,
  look: () => Promise<T | undefined>,
  where: () => Promise<string>,
): Promise<T> {
  const [found] = await until(async () => {
    const seen = await look().catch(ignoreStale);
    return seen === undefined ? undefined : [seen] as const; // what it has seen may be ""
  }, async () => `${what} at ${await where()}`);
  return found;
}

/** Elements are stale while the next page replaces theirs: the caller looks for them again. */
function ignoreStale(error: unknown): undefined {
  const isStale = error instanceof WebDriverError && (error.code === "stale element reference" ||
    error.message.includes("does not belong to the document")); // what DevTools says of the same
  if (!isStale) throw error;
}

function listOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.map(asRecord) : [];
}

function readCookie(cookie: Readonly<Record<string, unknown>>): BrowserCookie {
  return {
    name: String(cookie["name"]),
    value: String(cookie["value"]),
    path: String(cookie["path"]),
    secure: cookie["secure"] === true,
    httpOnly: cookie["httpOnly"] === true,
    sameSite: String(cookie["sameSite"]),
  };
}
