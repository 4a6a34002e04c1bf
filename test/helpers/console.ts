import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import type { Credentials, Gatepost, TokenResponse } from "./gatepost.ts";
import type { Client } from "./http_client.ts";

interface Visit {
  /** A browser in which somebody may have signed in before. */
  readonly browser?: Client;
  /** More parameters of the authorize request. */
  readonly more?: Readonly<Record<string, string>>;
}

/** Signs in as the console's page does; `at` is the address of that page. */
export async function signIn(
  gatepost: Gatepost,
  user: Credentials,
  scope: string,
  at = `${gatepost.issuer}/console`,
  { browser = gatepost.openBrowser(), more = {} }: Visit = {},
) {
  const verifier = randomBytes(32).toString("base64url");
  const query = new URLSearchParams({
    client_id: "console",
    redirect_uri: at,
    scope,
    state: "here",
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    ...more,
  });
  const address = `/authorization/authorize?${query}`;
  const page = await browser.get(address);
  const { username, password } = user;
  const answer = page.forms().length === 0 ? page
    : await browser.follow(await browser.submit(page, { username, password }));
  return {
    browser,
    answer,
    location: new URL(answer.location ?? "about:blank"),
    tryExchange(code: string) {
      const fields = { grant_type: "authorization_code", client_id: "console", code };
      const given = { ...fields, redirect_uri: at, code_verifier: verifier };
      return browser.postForm("/authorization/token", given);
    },
    async exchange(code: string): Promise<TokenResponse> {
      const tokens = await this.tryExchange(code);
      assert.equal(tokens.status, 200, tokens.text);
      return tokens.json() as TokenResponse;
    },
  };
}

/** Signs in with all scopes of the console, and returns the tokens too. */
export async function tokensOf(gatepost: Gatepost, user: Credentials, visited?: Visit) {
  const scopes = "backend backend:read consumer";
  const visit = await signIn(gatepost, user, scopes, undefined, visited);
  const code = visit.location.searchParams.get("code") ?? "";
  assert.notEqual(code, "", visit.answer.text);
  return { ...visit, tokens: await visit.exchange(code) };
}
