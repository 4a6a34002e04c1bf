import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { SOURCE_ENTRY } from "../helpers/gatepost.ts";
import { type RunningServer, startServer } from "../helpers/process.ts";

const ENTER = "\uE007";
/** A folder for pictures of the pages; without it none are made. */
const SHOTS = process.env["GATEPOST_TEST_SHOTS"];

let server: RunningServer;
let browser: Browser;
before(async () => {
  server = await startServer({ entry: SOURCE_ENTRY });
  browser = await openBrowser({ width: 1280, height: 800, javascript: false });
});
after(async () => {
  await browser?.close();
  await server?.stop();
});

/** Checks that the page fits either width; a picture of each, light and dark. */
async function look(name: string): Promise<void> {
  for (const width of [360, 1280]) {
    for (const scheme of ["light", "dark"]) {
      await browser.resize(width, width === 360 ? 740 : 800);
      await browser.prefer({ "prefers-color-scheme": scheme });
      const { cssContentSize: content } = Object(
        await browser.devtools("Page.getLayoutMetrics", {}),
      );
      assert.ok(content.width <= width, `${name} at ${width}: ${content.width} px wide`);
      if (SHOTS) await browser.screenshot(`${SHOTS}/setup-${name}-${width}-${scheme}.png`);
    }
  }
}

test("at the first sign-in a user changes the printed password, without script", async () => {
  const printed = /with password (\S+)/.exec(server.stderr())?.[1] ?? "";
  await browser.goto(`${server.url}/authorization/verify`);
  assert.equal(await browser.label(".steps"), "Step 1 of 2");
  assert.match(await browser.text("#first"), /^Nobody has signed in yet\. User admin's password/);
  assert.equal(await browser.attribute("#password", "aria-describedby"), "error first");
  await look("sign-in");
  await browser.find("#password:focus");
  await browser.press(printed + ENTER);

  await browser.find("#new_password:focus");
  assert.equal(await browser.text("h1"), "Choose your own password");
  assert.equal(await browser.label(".steps"), "Step 2 of 2");
  assert.equal(await browser.label("#new_password"), "New password");
  assert.equal(await browser.count("button[value=keep]"), 1);
  assert.equal(await browser.count("[aria-invalid]"), 0);
  await look("choose");
  await browser.press(`short${ENTER}`);

  assert.match(await browser.text("[role=alert]"), /Must be 8 to 1024 bytes long/);
  assert.equal(await browser.attribute("#new_password", "aria-describedby"), "error help");
  assert.equal(await browser.count("#new_password[aria-invalid=true]"), 1);
  await look("refused");
  await browser.type("#new_password", "a sentence is best");
  await browser.press(ENTER); // the first button, which does not keep the printed one

  await browser.find("#user_code:focus");
  assert.match(await browser.text("main"), /Signed in as admin/);
  await browser.click("button[value=switch]");
  await browser.find("[role=status]");
  assert.equal(await browser.count("#first, .steps"), 0);
  await browser.type("#username", "admin");
  await browser.type("#password", `a sentence is best${ENTER}`);
  await browser.find("#user_code");
  const errors = await browser.consoleErrors();
  assert.deepEqual(errors.filter((each) => !each.includes("status of 400")), []);
});
