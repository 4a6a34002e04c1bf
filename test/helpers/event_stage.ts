import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { queryDatabase } from "./engine.ts";
import { type Gatepost, PASSWORD, startGatepost } from "./gatepost.ts";
import type { ClientResponse } from "./http_client.ts";
import { type Receiver, startReceiver } from "./receiver.ts";
import { bearer, newName } from "./requests.ts";
import { readItems, readObject } from "./responses.ts";
import { until } from "./until.ts";

/** A server whose callbacks reach a receiver on the loopback, each resend after 20 ms. */
export interface EventStage {
  readonly gatepost: Gatepost;
  readonly receiver: Receiver;
  /** A token of user `admin`, who has both scopes. */
  readonly admin: string;
  /** A token of a new user with scope `consumer` or those given. */
  newConsumer(scopes?: readonly string[]): Promise<string>;
  /** Calls with a token and, where there is one, a JSON body. */
  call(method: string, path: string, token: string, body?: unknown): Promise<ClientResponse>;
  /** Call as the administrator. */
  get(path: string): Promise<ClientResponse>;
  post(path: string, body?: unknown): Promise<ClientResponse>;
  patch(path: string, body: unknown): Promise<ClientResponse>;
  /** Subscribes a new path of the receiver, which returns these statuses; the last one stays. */
  subscribe(token: string, event: string, ...statuses: number[]): Promise<StagedSubscription>;
  /** Dispatches through the backend and returns the event's id. */
  dispatch(name: string, data: unknown, more?: Readonly<Record<string, unknown>>): Promise<string>;
  /** The subscription's deliveries as its owner sees them, once they have these statuses. */
  deliveries(
    subscription: StagedSubscription,
    ...statuses: readonly string[]
  ): Promise<readonly Readonly<Record<string, unknown>>[]>;
  /** The audited actions on a target, oldest first, each by a user and from an address. */
  audited(target: string): Promise<readonly unknown[]>;
  stop(): Promise<void>;
}

/** A subscription as a test knows it. */
export interface StagedSubscription {
  readonly id: string;
  /** The receiver's path. */
  readonly path: string;
  readonly event: string;
  readonly token: string;
}

/** Starts a receiver and a server that may call it; `modules` are endpoint modules by file name. */
export async function startEventStage(
  env: Readonly<Record<string, string>> = {},
  modules: Readonly<Record<string, string>> = {},
): Promise<EventStage> {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-modules-"));
  for (const [name, source] of Object.entries(modules)) await writeFile(join(folder, name), source);
  const receiver = await startReceiver();
  const gatepost = await startGatepost({
    env: {
      GATEPOST_ENDPOINTS: folder,
      GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
      GATEPOST_RESEND_DELAYS: "20ms",
      GATEPOST_DISTRIBUTE_INTERVAL: "100ms",
      ...env,
    },
  });
  const admin = await gatepost.login({ id: "", username: "admin", password: PASSWORD });

  const stage: EventStage = {
    gatepost,
    receiver,
    admin,
    async newConsumer(scopes = ["consumer"]) {
      return gatepost.login(await gatepost.createUser({ scopes }));
    },
    call: (method, path, token, body) =>
      gatepost.api.sendJson(method, path, body, bearer(token)),
    get: (path) => stage.call("GET", path, admin),
    post: (path, body) => stage.call("POST", path, admin, body),
    patch: (path, body) => stage.call("PATCH", path, admin, body),
    async subscribe(token, event, first = 204, ...others) {
      const path = `/${newName("hook")}`;
      const react = (status: number) => ({ kind: "answer", status, body: "not for you" } as const);
      receiver.react(path, react(first), ...others.map(react));
      const body = { event, endpoint: receiver.url + path };
      const response = await stage.call("POST", "/consumer/subscription", token, body);
      assert.equal(response.status, 201, response.text);
      return { id: String(readObject(response)["id"]), path, event, token };
    },
    async dispatch(name, data, more = {}) {
      const response = await stage.call("POST", "/backend/event", admin, { name, data, ...more });
      assert.equal(response.status, 202, response.text);
      return String(readObject(response)["id"]);
    },
    async deliveries({ id, token }, ...statuses) {
      let items: readonly Readonly<Record<string, unknown>>[] = [];
      await until(async () => {
        const path = `/consumer/subscription/${id}/delivery`;
        items = readItems(await stage.call("GET", path, token));
        return items.map(({ status }) => status).join() === statuses.join();
      }, () => `deliveries are ${items.map(({ status }) => status)}, not ${statuses}`);
      return items;
    },
    async audited(target) {
      const entries = "SELECT action, actor, address FROM audit WHERE target = ? ORDER BY id";
      const rows = await queryDatabase(gatepost.server.folder, entries, target);
      for (const { actor, address } of rows) {
        assert.match(String(actor), /^u[0-9a-z]+$/);
        assert.match(String(address), /^10\./);
      }
      return rows.map(({ action }) => action);
    },
    async stop() {
      await gatepost.stop();
      await receiver.close();
      await rm(folder, { recursive: true });
    },
  };
  return stage;
}
