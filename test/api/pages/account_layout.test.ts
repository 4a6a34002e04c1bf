import assert from "node:assert/strict";
import { test } from "node:test";
import { type AccountFrame, renderAccountPage } from
  "../../../src/api/pages/account_layout.ts";
import { html } from "../../../src/base/html.ts";
import { accountFrame, markupOf, tagWithId, titleOf } from "../../helpers/pages.ts";

const show = (more: Partial<AccountFrame> = {}) => {
  const frame = { ...accountFrame, ...more };
  return renderAccountPage(frame, "Your account", "All of it.", html`<p>What it says.</p>`);
};

test("renderAccountPage() links to the console only for users who may open it", () => {
  assert.match(markupOf(show({ hasConsole: true })), /<a href="\/console">Console<\/a>/);
  assert.doesNotMatch(markupOf(show()), /href="\/console"/);
});

test("renderAccountPage() shows a message as a status, an error as an alert", () => {
  const done = show({ message: "It has ended." });
  assert.match(tagWithId(done, "error"), / role="status"/);
  assert.match(titleOf(done), /^Your account /);
  const error = show({ message: "It is wrong.", status: 400 });
  assert.equal(error.status, 400);
  assert.match(tagWithId(error, "error"), / role="alert"/);
  assert.match(titleOf(error), /^Not done – Your account /);
});

test("renderAccountPage() has one form that signs out, and one around its content", () => {
  const forms = [...markupOf(show()).matchAll(/<form [^>]*action="([^"]*)".*?<\/form>/gs)];
  assert.deepEqual(forms.map(([, action]) => action), ["/account?do=make", "/account?do=make"]);
  assert.match(forms[0]?.[0] ?? "", /name="do" value="session b1"/);
  assert.match(forms[1]?.[0] ?? "", /What it says/);
});
