import assert from "node:assert/strict";
import { test } from "node:test";
import { accountPage } from "../../../src/api/pages/account_page.ts";
import { newId } from "../../../src/base/id.ts";
import { accountFrame, markupOf } from "../../helpers/pages.ts";

const NOW_MS = Date.UTC(2026, 5, 15);
const APP = { id: "a1", name: "Northwind", url: "https://app.northwind.example", scopes: ["shop"] };
const GRANT = {
  id: newId("g", Date.UTC(2026, 4, 20)),
  app: APP.id,
  user: "u1",
  type: "authorization_code",
  scopes: APP.scopes,
  status: "active",
  accessUntilMs: NOW_MS + 60_000,
  refreshUntilMs: 0,
  revokedAtMs: null,
  name: null,
  lastUsedAtMs: null,
} as const;

const show = (more: Partial<Parameters<typeof accountPage>[1]>) =>
  markupOf(accountPage(accountFrame, {
    apps: [APP],
    grants: [],
    sessions: [],
    scopeWords: new Map([["shop", { description: "Buy in your name", grave: false }]]),
    nowMs: NOW_MS,
    ...more,
  }));

test("an app without a live grant is listed with its scopes, without a history", () => {
  const markup = show({});
  assert.match(markup, /Buy in your name/);
  assert.match(markup, /Has no token now/);
  assert.doesNotMatch(markup, /Allowed |Invalid|NaN|Infinity/);
});

test("an app's history is the day of its oldest grant, and the last use of any grant", () => {
  const used = { ...GRANT, lastUsedAtMs: NOW_MS - 3 * 3_600_000 };
  const newer = { ...GRANT, id: newId("g", Date.UTC(2026, 5, 1)) };
  assert.match(show({ grants: [newer, used] }), /Allowed 20 May 2026 · used 3 h ago/);
  assert.match(show({ grants: [newer] }), /Allowed 1 Jun 2026 · not used yet/);
});

test("an app's icon is the first character of its name, a surrogate pair as one", () => {
  for (const [name, letter] of [["northwind", "N"], ["\u{1f98a} fox", "\u{1f98a}"]] as const) {
    assert.match(show({ apps: [{ ...APP, name }] }), RegExp(`aria-hidden="true">${letter}</span>`));
  }
});
