import assert from "node:assert/strict";
import { inspect } from "node:util";
import type { Tokens } from "./client.ts";
import type { Stage } from "./stage.ts";

/** Checks the user whom the server sees in a token, and the scope that the client was given. */
export async function assertCaller(
  stage: Stage,
  { accessToken, scope }: Tokens,
  sub: string,
  expectedScope: string,
): Promise<void> {
  const caller = await stage.caller(accessToken);
  assert.deepEqual([caller?.["sub"], caller?.["scope"]], [sub, expectedScope]);
  if (scope !== undefined) assert.equal(scope, expectedScope);
}

/** Checks that the server refuses an access token. */
export async function assertRefused(stage: Stage, accessToken: string): Promise<void> {
  assert.equal(await stage.caller(accessToken), undefined, "the access token still works");
}

/** Checks that the client was refused and has the reason. */
export async function assertRefusal(promise: Promise<unknown>, why: RegExp): Promise<void> {
  await assert.rejects(promise, (error) => {
    assert.match(inspect(error, { depth: 8 }), why);
    return true;
  });
}

/** The token with another signature. */
export function alter(accessToken: string): string {
  const at = accessToken.lastIndexOf(".") + 5;
  const other = accessToken[at] === "A" ? "B" : "A";
  return accessToken.slice(0, at) + other + accessToken.slice(at + 1);
}
