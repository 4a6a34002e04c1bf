import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { authorizeAddress, openStage, type Stage, type StageApp } from "./sign_in_stage.ts";

const LONG_USER = `${"unbroken".repeat(7)}.longest`;
const WIDTHS = [360, 1280];

let stage: Stage;
let browser: Browser;
let password: string;
let app: StageApp;
/** Asks for many scopes. */
let greedyApp: StageApp;

before(async () => {
  stage = await openStage({ env: { GATEPOST_NAME: "unbroken".repeat(8) } });
  browser = await openBrowser({ width: 1280, height: 800 });
  const many = Array.from({ length: 14 }, (_, index) => `many${index}`);
  password = await stage.addUser(LONG_USER, ["consumer", "orders", "backend", ...many]);
  greedyApp = await stage.addApp("greedy", { scopes: many });
  app = await stage.addApp("wide", {
    name: "Donaudampfschifffahrtsgesellschaftskapitänsverwaltung",
    scopes: ["consumer", "orders", "backend", `x${"-very-long-scope".repeat(3)}`],
  });
});
after(async () => {
  await browser?.close();
  await stage?.close();
});

const visit = (more?: Readonly<Record<string, string>>, to = app) =>
  browser.goto(authorizeAddress(stage.server.url, to, more));

async function sendPassword(text: string): Promise<void> {
  await browser.logIn(LONG_USER, text);
}

/** Each page and state with what opens it, in the order of one session. */
const states: Readonly<Record<string, () => Promise<unknown>>> = {
  "login page": () => visit(),
  "login page after a wrong password": async () => {
    await sendPassword("not this one");
    return browser.find("[role=alert]");
  },
  "consent page": async () => {
    await sendPassword(password);
    return browser.find("button[value=allow]");
  },
  "consent page for scope backend": () => visit({ scope: "consumer backend" }),
  "consent page for many scopes": () => visit({}, greedyApp),
  "page for a device's code": () => browser.goto(`${stage.server.url}/authorization/verify`),
  "page for a device's code after a wrong code": async () => {
    await browser.type("#user_code", "BCDF-GHJK");
    await browser.click("form .primary");
    return browser.find("[role=alert]");
  },
  "account page": () => browser.goto(`${stage.server.url}/account`),
  "account page to set a password": () => browser.goto(`${stage.server.url}/account?do=password`),
  "account page to make a token": () => browser.goto(`${stage.server.url}/account?do=make`),
  "webhooks page": async () => {
    await browser.goto(`${stage.server.url}/account/webhooks`);
    return browser.find("main h1");
  },
  "front door": () => browser.goto(`${stage.server.url}/`),
  "page for a mistyped address": () => browser.goto(`${stage.server.url}/consloe`),
  "error page": () => browser.goto(`${stage.server.url}/authorization/authorize?client_id=nobody`),
};

for (const [name, open] of Object.entries(states)) {
  test(`the ${name} fits the window's width and follows the colour scheme`, async () => {
    await open();
    for (const width of WIDTHS) {
      for (const scheme of ["light", "dark"]) {
        await emulate(width, scheme);
        const seen = await look();
        assert.ok(seen.contentWidth <= width, `${width}: ${seen.contentWidth} px wide`);
        assert.equal(seen.isDark, scheme === "dark", `${scheme}: background ${seen.background}`);
        assert.ok(seen.faintest.contrast >= 4.5, `${scheme}: ${JSON.stringify(seen.faintest)}`);
        assert.deepEqual(seen.small, [], `${width}: controls of less than 24 px`);
      }
    }
  });
}

test("password managers find the username and the password in one form", async () => {
  await signOut();
  await visit();
  const form = "form[method=post]";
  assert.equal(await browser.count(form), 1);
  const username = `${form} input[name=username][type=text][autocomplete=username]`;
  const secret = `${form} input[name=password][type=password][autocomplete=current-password]`;
  assert.equal(await browser.count(username), 1);
  assert.equal(await browser.count(secret), 1);
  assert.equal(await browser.attribute("#username", "autocapitalize"), "none");
  assert.equal(await browser.count("input:not([type=hidden])"), 2);
});

test("the login page names its fields, button and error for a screen reader", async () => {
  await signOut();
  await visit();
  assert.equal(await browser.label("#username"), "Username");
  assert.equal(await browser.label("#password"), "Password");
  assert.equal(await browser.label("form [type=submit]"), "Sign in");
  await sendPassword("not this one");
  await browser.find("[role=alert]");
  assert.match(await browser.title(), /^Wrong username or password/);
  assert.equal(await browser.attribute("#password", "aria-invalid"), "true");
  assert.match(await describedBy("#password"), /do not match/);
});

test("the consent page names its buttons and its list of scopes for a screen reader", async () => {
  await signOut();
  await visit({ scope: "consumer orders" });
  await sendPassword(password);
  assert.equal(await browser.label("button[value=allow]"), "Allow");
  assert.equal(await browser.label("button[value=deny]"), "Deny");
  assert.equal(await browser.label("button[value=switch]"), "Sign out or use another account");
  assert.equal(await browser.label("ul"), "If you allow it, this app can:");
  assert.equal(await browser.count("ul > li"), 2);
  assert.equal(await browser.count("h1"), 1);
  assert.equal(await browser.count("main"), 1);
});

test("a phone shows the consent buttons at once, and further scopes on demand", async () => {
  await signOut();
  await emulate(360, "light");
  await visit({}, greedyApp);
  await sendPassword(password);
  await browser.find("button[value=allow]");
  const bottom = await browser.execute(
    "return document.querySelector('button[value=deny]').getBoundingClientRect().bottom",
  );
  assert.ok(Number(bottom) <= 740, String(bottom));
  assert.equal(await browser.text("summary"), "and 8 more");
  assert.doesNotMatch(await browser.text("main"), /many13/);
  // What the Tab key, for example, scrolls into view is not left below the buttons.
  await browser.execute("document.querySelector('summary').scrollIntoView({ block: 'end' })");
  await browser.click("summary");
  assert.match(await browser.text("main"), /many13/);
});

test("the account page shows an app's letter in a circle of 28 px", async () => {
  await signOut();
  await emulate(1280, "light");
  await visit({ scope: "consumer orders" });
  await sendPassword(password);
  await browser.click("button[value=allow]");
  await browser.waitForUrl(/[?&]code=/);
  await browser.goto(`${stage.server.url}/account`);
  await browser.find(".face");
  const size = await browser.execute(
    "const { width, height } = document.querySelector('.face').getBoundingClientRect();" +
      "return [width, height]",
  );
  assert.deepEqual(size, [28, 28]);
});

test("the login page fits a phone with text of twice the size", async () => {
  await signOut();
  await emulate(360, "light");
  await visit();
  await browser.execute("document.documentElement.style.fontSize = '32px'");
  const { contentWidth } = await look();
  assert.ok(contentWidth <= 360, `${contentWidth} px`);
});

const signOut = () => browser.clearCookies();

async function emulate(width: number, scheme: string): Promise<void> {
  await browser.resize(width, 740);
  await browser.prefer({ "prefers-color-scheme": scheme });
}

async function describedBy(css: string): Promise<string> {
  return browser.text(`#${await browser.attribute(css, "aria-describedby")}`);
}

interface Look {
  readonly contentWidth: number;
  readonly background: string;
  readonly isDark: boolean;
  /** The text with the least contrast (WCAG 2.2, 1.4.3). */
  readonly faintest: { readonly text: string; readonly contrast: number };
  /** Controls of less than 24 px in either direction (WCAG 2.2, 2.5.8). */
  readonly small: readonly string[];
}

async function look(): Promise<Look> {
  const seen: unknown = await browser.execute(`(${measure.toString()})(); return window.seen;`);
  return JSON.parse(String(seen));
}

/** Runs in the page. */
function measure(): void {
  const channels = (colour: string) => (colour.match(/[\d.]+/g) ?? []).map(Number);
  const luminance = (colour: string) => {
    const [r = 0, g = 0, b = 0] = channels(colour).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const backgroundOf = (element: Element | null): string => {
    if (element === null) return "rgb(255, 255, 255)";
    const { backgroundColor } = getComputedStyle(element);
    const isClear = channels(backgroundColor)[3] === 0;
    return isClear ? backgroundOf(element.parentElement) : backgroundColor;
  };
  const contrast = (element: Element) => {
    const [a, b] = [luminance(getComputedStyle(element).color), luminance(backgroundOf(element))];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const withText = [...document.body.querySelectorAll("*")].filter((element) =>
    [...element.childNodes].some((node) => node.nodeType === 3 && node.textContent?.trim())
  );
  const texts = withText.map((element) => ({
    text: element.textContent ?? "",
    contrast: contrast(element),
  }));
  const controls = [...document.querySelectorAll("button, input:not([type=hidden], [hidden])")]
    .map((control) => control.closest("label") ?? control); // which can be clicked too
  const background = getComputedStyle(document.body).backgroundColor;
  Object.assign(window, {
    seen: JSON.stringify({
      contentWidth: document.documentElement.scrollWidth,
      background,
      isDark: luminance(background) < 0.2,
      faintest: texts.sort((a, b) => a.contrast - b.contrast)[0],
      small: controls.filter((control) => {
        const { width, height } = control.getBoundingClientRect();
        return width < 24 || height < 24;
      }).map((control) => control.outerHTML),
    }),
  });
}
