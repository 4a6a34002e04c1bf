import assert from "node:assert/strict";

import type { HttpResponse } from "../../src/base/http_message.ts";
import type { AccountFrame } from "../../src/api/pages/account_layout.ts";
import {
  type ConsentPageInput,
  type ConsentScope,
  consentPage,
} from "../../src/api/pages/consent_page.ts";
import { type ErrorPageInput, errorPage } from "../../src/api/pages/error_page.ts";
import { type LoginPageInput, loginPage } from "../../src/api/pages/login_page.ts";
import type { Site } from "../../src/api/pages/page_layout.ts";
import { verifyPage, type VerifyPageInput } from "../../src/api/pages/verify_page.ts";
import { OWN_SCOPES, type ScopeWords } from "../../src/oauth/scope.ts";

/** The site of these pages. */
export const site: Site = { name: "Northwind", host: "api.northwind.example", basePath: "" };

/** The frame around the pages of an account. */
export const accountFrame: AccountFrame = {
  site,
  action: "/account?do=make",
  csrf: "csrf-token",
  formActionOrigin: "https://api.northwind.example",
  styleHref: "/console/assets/x/console.css",
  username: "marta",
  session: "b1",
  hasConsole: false,
  message: undefined,
  status: 200,
};

const form = {
  site,
  action: "/authorization/authorize?client_id=a1&state=x",
  csrf: "csrf-token",
  app: { name: "Harbour Orders", url: "https://orders.example" },
  formActionOrigin: "https://orders.example",
};

/** A login page for Harbour Orders; `more` replaces members of its input. */
export function sampleLogin(more: Partial<LoginPageInput> = {}): HttpResponse {
  return loginPage({ ...form, ...more });
}

/** A consent page on which Harbour Orders asks marta for `consumer`; `more` replaces members. */
export function sampleConsent(more: Partial<ConsentPageInput> = {}): HttpResponse {
  const scopes = asked("consumer");
  return consentPage({ ...form, username: "marta", scopes, isImpersonable: false, ...more });
}

/** The page for a device's code; `more` replaces members of its input. */
export function sampleVerify(more: Partial<VerifyPageInput> = {}): HttpResponse {
  return verifyPage({ ...form, username: "marta", userCode: "", ...more });
}

/** Scopes that are asked for the first time; those of the service itself have descriptions. */
export function asked(...names: readonly string[]): ConsentScope[] {
  return names.map((name) => ({ name, words: OWN_SCOPES.get(name), isNew: true }));
}

/** Scopes that were allowed before. */
export function allowed(...names: readonly string[]): ConsentScope[] {
  return asked(...names).map((scope) => ({ ...scope, isNew: false }));
}

/** A scope with this description, asked for the first time. */
export function askedAs(name: string, description: string, more: Partial<ScopeWords> = {}) {
  return { name, words: { description, grave: false, ...more }, isNew: true };
}

/** An error page for a link that does not work; `more` replaces members of its input. */
export function sampleError(more: Partial<ErrorPageInput> = {}): HttpResponse {
  return errorPage({
    site,
    status: 400,
    title: "This link does not work",
    detail: "redirect_uri is missing.",
    requestId: "r1",
    ...more,
  });
}

/** The document as text. */
export function bodyOf(page: HttpResponse): string {
  assert.ok(typeof page.body === "string");
  return page.body;
}

/** The document without its style sheet, which a search must not match. */
export function markupOf(page: HttpResponse): string {
  return bodyOf(page).replace(/<style>[^<]*<\/style>/, "");
}

/** The window's title. */
export function titleOf(page: HttpResponse): string {
  return /<title>([^<]*)<\/title>/.exec(bodyOf(page))?.[1] ?? "";
}

/** The text of the body: tags removed, spaces collapsed, entities not decoded. */
export function textOf(page: HttpResponse): string {
  const body = bodyOf(page).replace(/^[^]*<body>/, "");
  return body.replace(/<[^>]*>/g, " ").replace(/\s+/g, " ").trim();
}

/** The opening tag of the element with this id. */
export function tagWithId(page: HttpResponse, id: string): string {
  const tags = [...markupOf(page).matchAll(/<[a-z][^>]*>/g)].map((match) => match[0]);
  const tag = tags.find((text) => text.includes(` id="${id}"`));
  assert.ok(tag !== undefined, id);
  return tag;
}

/** How often a global pattern matches. */
export function count(text: string, pattern: RegExp): number {
  return [...text.matchAll(pattern)].length;
}
