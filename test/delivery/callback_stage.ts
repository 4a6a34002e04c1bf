import assert from "node:assert/strict";
import { after, beforeEach } from "node:test";
import {
  type Callback,
  type CallbackSender,
  createCallbackSender,
} from "../../src/delivery/callback.ts";
import { formatSigningSecret } from "../../src/event/signature.ts";
import { createEgress } from "../../src/outbound/egress.ts";
import { EgressError } from "../../src/outbound/reachable.ts";
import { readCidr } from "../helpers/cidr.ts";
import { startReceiver } from "../helpers/receiver.ts";

export const SECRETS = [7, 9].map((byte) => formatSigningSecret(new Uint8Array(32).fill(byte)));
export const NOW_MS = Date.UTC(2026, 10, 20, 12, 0, 0, 999);
/** The timeout of an attempt. */
export const TIMEOUT_MS = 400;
/** How long a test waits for what is to come. */
export const PATIENCE_MS = 3_000;
/** Egress to the loopback. */
export const EGRESS = {
  connectionsPerOrigin: 64,
  timeoutMs: 5_000,
  allow: [readCidr("127.0.0.1/32")],
};

/** Starts a receiver for the tests of a file, and sends callbacks to it. */
export async function openCallbacks() {
  const receiver = await startReceiver();
  const egress = createEgress({
    ...EGRESS,
    lookup: async (name) => {
      throw new EgressError("NAME_LOOKUP_FAILED", name);
    },
  });
  after(async () => {
    await egress.close();
    await receiver.close();
  });
  beforeEach(() => {
    receiver.clear();
  });

  function createSender(timeoutMs: number, guard = egress): CallbackSender {
    return createCallbackSender({
      egress: guard,
      timeoutMs,
      now: () => NOW_MS,
    });
  }

  function sendAny(change: Partial<Callback>, sender: CallbackSender) {
    return sender.send({
      id: "d0abc00000001",
      event: "order.created",
      json: '{"order":1}',
      endpoint: `${receiver.url}/hook`,
      attempt: 1,
      secrets: SECRETS.slice(0, 1),
      ...change,
    });
  }

  /** Makes an attempt. */
  async function send(change: Partial<Callback> = {}, sender = createSender(TIMEOUT_MS)) {
    const result = await sendAny(change, sender);
    assert.ok("outcome" in result, "it was sent");
    return result;
  }

  return { receiver, createSender, sendAny, send };
}
