import assert from "node:assert/strict";
import type { Item } from "../helpers/backend_stage.ts";
import { startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { bearer, newAddress, newName } from "../helpers/requests.ts";
import { readItems, readObject } from "../helpers/responses.ts";

/** Both processes have one base URL; otherwise each would be an issuer of its own. */
export const ENV = { GATEPOST_BASE_URL: "http://gatepost.test" };
export const TOKENS_PATH = "/consumer/token";
export const NEW_PASSWORD = "a password that is new";
/** The scopes of a user. */
export const SCOPES = ["consumer", "orders", "backend"];

/** Starts two processes on one database; the functions do what users do with their own account. */
export async function startAccountStage() {
  const first = await startGatepost({ env: ENV });
  const second = await startGatepost({ env: ENV, folder: first.server.folder });

  function make(token: string, more: object = {}, at = first): Promise<ClientResponse> {
    const body = { name: "script", scopes: ["consumer"], expires_in: 3600, ...more };
    return at.api.postJson(TOKENS_PATH, body, bearer(token));
  }

  return {
    first,
    second,
    /** Makes a personal token. */
    make,
    async makeToken(token: string, more: object = {}): Promise<{ id: string; token: string }> {
      const response = await make(token, more);
      assert.equal(response.status, 201, response.text);
      const made = readObject(response);
      return { id: String(made["id"]), token: String(made["token"]) };
    },
    list: async (token: string, query = "", at = first): Promise<readonly Item[]> =>
      readItems(await at.api.get(`${TOKENS_PATH}${query}`, bearer(token))),
    /** Ends a token by its id, or all but the one that is used. */
    end: (token: string, id = ""): Promise<ClientResponse> =>
      first.api.send("DELETE", `${TOKENS_PATH}${id && `/${id}`}`, { headers: bearer(token) }),
    changePassword(token: string, current: string, more = {}, address = newAddress()) {
      const headers = { ...bearer(token), "x-forwarded-for": address };
      const body = { current, new: NEW_PASSWORD, ...more };
      return first.api.sendJson("PUT", "/consumer/account/password", body, headers);
    },
    /** Makes a subscription and returns its path. */
    async subscribe(token: string): Promise<string> {
      const body = { event: newName("event"), endpoint: "https://hooks.example/in" };
      const response = await first.api.postJson("/consumer/subscription", body, bearer(token));
      assert.equal(response.status, 201, response.text);
      return `/consumer/subscription/${String(readObject(response)["id"])}`;
    },
    statusOf: async (token: string, path: string) =>
      readObject(await first.api.get(path, bearer(token)))["status"],
    /** A new user and their login token. */
    async open(scopes = SCOPES) {
      const user = await first.createUser({ scopes });
      return { user, login: await first.login(user) };
    },
    async stop(): Promise<void> {
      await second.stop();
      await first.stop();
    },
  };
}
