import assert from "node:assert/strict";
import {
  type EventStage,
  type StagedSubscription,
  startEventStage,
} from "../helpers/event_stage.ts";
import { newName } from "../helpers/requests.ts";

/** A server with a consumer of deliveries. */
export interface DeliveryStage {
  readonly stage: EventStage;
  /** The consumer's token. */
  readonly consumer: string;
  /** A subscription with one delivery that has failed for good, and that delivery's id. */
  fail(...later: number[]): Promise<{ subscription: StagedSubscription; delivery: string }>;
  /** Changes a subscription as its owner. */
  patch(subscription: StagedSubscription, change: unknown): Promise<void>;
  /** Disables a subscription as the administrator. */
  disable(subscription: StagedSubscription): Promise<void>;
}

/** Starts such a server; `modules` are endpoint modules by file name. */
export async function startDeliveryStage(
  modules: Readonly<Record<string, string>> = {},
): Promise<DeliveryStage> {
  const stage = await startEventStage({}, modules);
  const consumer = await stage.newConsumer();
  const change = async (path: string, token: string, body: unknown) => {
    const response = await stage.call("PATCH", path, token, body);
    assert.equal(response.status, 200, response.text);
  };
  return {
    stage,
    consumer,
    async fail(...later) {
      const subscription = await stage.subscribe(consumer, newName("e"), 500, 500, ...later);
      await stage.dispatch(subscription.event, { n: 1 });
      const [delivery] = await stage.deliveries(subscription, "failed");
      return { subscription, delivery: String(delivery?.["id"]) };
    },
    patch: ({ id, token }, body) => change(`/consumer/subscription/${id}`, token, body),
    disable: ({ id }) =>
      change(`/backend/subscription/${id}`, stage.admin, { status: "disabled" }),
  };
}

/** The path of a subscription's delivery. */
export function deliveryPath({ id }: StagedSubscription, delivery: unknown): string {
  return `/consumer/subscription/${id}/delivery/${String(delivery)}`;
}
