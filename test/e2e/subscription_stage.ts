import assert from "node:assert/strict";
import { type EventStage, startEventStage } from "../helpers/event_stage.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";

/** The path of the list of a consumer's subscriptions. */
export const PATH = "/consumer/subscription";

/** A server with a consumer who subscribes. */
export interface SubscriptionStage {
  readonly stage: EventStage;
  /** The consumer's token. */
  readonly consumer: string;
  /** Posts a body, as that consumer or with another token. */
  subscribe(body: unknown, token?: string): Promise<ClientResponse>;
  /** Makes a subscription, and returns its record with its secret. */
  subscribed(token?: string): Promise<Readonly<Record<string, unknown>>>;
}

/** Starts such a server; `modules` are endpoint modules by file name. */
export async function startSubscriptionStage(
  modules: Readonly<Record<string, string>> = {},
): Promise<SubscriptionStage> {
  const stage = await startEventStage({}, modules);
  const consumer = await stage.newConsumer();
  const subscribe = (body: unknown, token = consumer) => stage.call("POST", PATH, token, body);
  return {
    stage,
    consumer,
    subscribe,
    async subscribed(token) {
      const response = await subscribe(goodBody(), token);
      assert.equal(response.status, 201, response.text);
      return readObject(response);
    },
  };
}

/** A valid body, different each time. */
export function goodBody(more: Readonly<Record<string, unknown>> = {}) {
  return { event: newName("e"), endpoint: "https://shop.example/hook", ...more };
}
