import assert from "node:assert/strict";
import { type GatepostOptions, startGatepost, type TestUser } from "./gatepost.ts";
import type { ClientResponse } from "./http_client.ts";
import { bearer } from "./requests.ts";
import { expectStatus, readItems, readObject } from "./responses.ts";

/** A resource of the backend as JSON. */
export type Item = Readonly<Record<string, unknown>>;

/** Scopes that a user and an app may not get: what they have, they, and the error's pointer. */
export const BAD_SCOPES: readonly (readonly [string, unknown, string])[] = [
  ["a string instead of a list", "consumer", "/scopes"],
  ["null instead of a list", null, "/scopes"],
  ["a number in the list", ["consumer", 1], "/scopes/1"],
  ["an empty name", [""], "/scopes/0"],
  ["a comma", ["a,b"], "/scopes/0"],
  ["a space", ["a b"], "/scopes/0"],
  ["a quote", ['a"b'], "/scopes/0"],
  ["a backslash", ["a\\b"], "/scopes/0"],
  ["a letter beyond ASCII", ["grün"], "/scopes/0"],
  ["a name of 65 characters", ["a".repeat(65)], "/scopes/0"],
];

/** Starts a server; the functions call its backend. */
export async function startBackendStage(options: GatepostOptions = {}) {
  const gatepost = await startGatepost(options);

  /** Sends as the administrator, or with another token, or with none (""). */
  function send(
    method: string,
    path: string,
    body?: unknown,
    token: string = gatepost.adminToken,
  ): Promise<ClientResponse> {
    return gatepost.api.sendJson(method, path, body, token === "" ? {} : bearer(token));
  }

  const list = async (path: string) => readItems(await send("GET", path));

  return {
    gatepost,
    send,
    list,
    /** An app that may use the password grant. */
    createPasswordApp: (more: Item = {}) =>
      gatepost.createApp({ grants: ["password", "refresh_token", "client_credentials"], ...more }),
    /** The newest grant of a user to an app. */
    async grantOf(user: TestUser, app: string): Promise<Item> {
      const [grant] = await list(`/backend/grant?user=${user.id}&app=${app}`);
      assert.ok(grant);
      return grant;
    },
    isAudited: async (target: string, action: string) =>
      (await list(`/backend/audit?target=${target}&action=${action}`)).length > 0,
  };
}

/** The object in a response, once it has this status; another one fails the test. */
export async function expectObject(
  status: number,
  responding: Promise<ClientResponse>,
): Promise<Item> {
  return readObject(await expectStatus(status, responding));
}
