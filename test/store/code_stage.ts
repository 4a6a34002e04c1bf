import { newId } from "../../src/base/id.ts";
import { sha256 } from "../../src/base/secret.ts";
import type { Database } from "../../src/database/database.ts";
import { type Code, type CodeRedemption, insertCode } from "../../src/store/codes.ts";
import { putConsentOfCode } from "../../src/store/consents.ts";
import { addSession } from "../helpers/database.ts";
import { HOUR_MS, NOW_MS } from "../helpers/grant_stage.ts";

/** A code of scope `consumer`, which is valid for a minute; `more` replaces members. */
export function sampleCode(app: string, user: string, more: Partial<Code> = {}): Code {
  return {
    id: newId("g", NOW_MS),
    app,
    user,
    scopes: ["consumer"],
    redirectUri: "https://orders.example/cb",
    challenge: null,
    resource: null,
    untilMs: NOW_MS + 60_000,
    ...more,
  };
}

/** The exchange of a code for a grant without a refresh token; `more` replaces members. */
export function sampleRedemption(
  code: Code,
  hash: Uint8Array,
  more: Partial<CodeRedemption> = {},
): CodeRedemption {
  return {
    ...code,
    type: "authorization_code",
    hash,
    accessScopes: code.scopes,
    refresh: undefined,
    refreshUntilMs: 0,
    accessUntilMs: NOW_MS + HOUR_MS,
    ...more,
  };
}

/** Stores a consent as the consent page does: with a code, in one batch. */
export async function consent(
  database: Database,
  user: string,
  app: string,
  scopes: readonly string[],
): Promise<number[]> {
  const code = sampleCode(app, user, { scopes });
  const session = await addSession(database, user);
  const stored = insertCode(code, sha256(code.id), session, NOW_MS);
  return database.write([stored, putConsentOfCode(code.id)]);
}
