import { Problem } from "../../base/problem.ts";
import { randomBytes } from "../../base/secret.ts";
import {
  described,
  type Infer,
  manyOf,
  named,
  object,
  oneOf,
  record,
  shown,
  TEXT,
  URI,
  withMembers,
} from "../../base/shape.ts";
import { TIME, toTime } from "../../base/time.ts";
import type { Services } from "../../services.ts";
import { type Administration, found, locatedResponse, storeAudited } from "../administration.ts";
import { backend, type Operation, system } from "../operation.ts";

const RECEIVER_PATH = "/console/receiver/";
const LIFE_MS = 3_600_000;
const [MAX_RECEIVERS, MAX_CALLBACKS, MAX_BODY_BYTES] = [20, 20, 65_536];
/** The headers of a callback that are kept; all others are dropped. */
const SHOWN_HEADERS = /^(?:webhook-.*|gatepost-.*|content-type|user-agent)$/;

const ANSWER = described("The status of its responses; none lets callbacks time out.",
  oneOf("200", "503", "410", "none"));

const ReceiverChange = named("ReceiverChange", object({ answer: ANSWER }));

const ReceiverRecord = named("Receiver", record({
  id: TEXT,
  url: described("The endpoint to give to a subscription.", URI),
  answer: ANSWER,
  expires_at: TIME,
}));

const CallbackRecord = named("ReceivedCallback", record({
  time: TIME,
  headers: shown<Readonly<Record<string, string>>>({ type: "object" }),
  body: TEXT,
  answer: ANSWER,
}));

export const WithCallbacks = named("ReceiverWithCallbacks", withMembers(ReceiverRecord, {
  callbacks: described("The last 20, newest first.", manyOf(CallbackRecord)),
}));

/** One receiver as it is now. */
interface Receiver {
  record: Infer<typeof ReceiverRecord>;
  callbacks: readonly Infer<typeof CallbackRecord>[];
}

/** The receivers of this process, whose addresses begin with `at`, by id. */
export type Receivers = ReturnType<typeof createReceivers>;

/** Makes the store of receivers, which only this process knows; `url` is where it listens. */
export function createReceivers(url: string) {
  return { at: url + RECEIVER_PATH, byId: new Map<string, Receiver>() };
}

/** /backend/receiver: subscribers for tests, whose responses to callbacks can be chosen. */
export function receiverOperations({ at, byId }: Receivers, services: Administration): Operation[] {
  const path = "/backend/receiver";
  const find = (id: string) => found(byId.get(id), "receiver");

  return [
    backend("POST", path, "addReceiver", "Make a receiver of callbacks, for an hour", {
      responses: { 201: ReceiverRecord },
      refuses: [409],
      async handle(context) {
        if (byId.size >= MAX_RECEIVERS) {
          throw new Problem(409, "limit", `There are ${MAX_RECEIVERS} receivers already.`);
        }
        const id = randomBytes(16).toString("hex");
        const expires_at = toTime(services.now() + LIFE_MS);
        const record = { id, url: at + id, answer: "200", expires_at } as const;
        byId.set(id, { record, callbacks: [] }); // before any await, so the limit holds
        setTimeout(() => byId.delete(id), LIFE_MS).unref();
        await storeAudited(context, "receiver.create", id, [], services).catch((error: unknown) => {
          byId.delete(id);
          throw error;
        });
        return locatedResponse(201, context.request.path, id, record);
      },
    }),
    backend("GET", `${path}/:id`, "getReceiver", "What a receiver has received", {
      returns: WithCallbacks,
      async handle({ params: { id } }) {
        const { record, callbacks } = find(id);
        return { ...record, callbacks };
      },
    }),
    backend("PUT", `${path}/:id`, "changeReceiver", "Change how a receiver responds", {
      body: ReceiverChange,
      returns: ReceiverRecord,
      async handle({ params: { id }, body: { answer }, ...context }) {
        const receiver = find(id);
        await storeAudited(context, "receiver.change", id, [], services);
        receiver.record = { ...receiver.record, answer };
        return receiver.record;
      },
    }),
    backend("DELETE", `${path}/:id`, "deleteReceiver", "Remove a receiver", {
      async handle({ params: { id }, ...context }) {
        find(id);
        await storeAudited(context, "receiver.delete", id, [], services);
        byId.delete(id);
      },
    }),
  ];
}

/** POST /console/receiver/{id}: keeps a callback, and responds with the receiver's `answer`. */
export function receiveOperation({ byId }: Receivers, { now }: Pick<Services, "now">): Operation {
  return system("POST", `${RECEIVER_PATH}:id`, "receive", "Receive a callback", {
    responses: { 200: undefined },
    async handle({ params: { id }, request }) {
      const receiver = found(byId.get(id), "receiver");
      const body = (await request.readBody(MAX_BODY_BYTES)).toString();
      const { record: { answer }, callbacks } = receiver;
      const headers = Object.fromEntries(Object.entries(request.headers)
        .filter(([name]) => SHOWN_HEADERS.test(name))
        .map(([name, value]) => [name, String(value)]));
      const callback = { time: toTime(now()), headers, body, answer };
      receiver.callbacks = [callback, ...callbacks].slice(0, MAX_CALLBACKS);
      if (answer !== "none") return { status: Number(answer) };
      const { signal } = request;
      if (!signal.aborted) await new Promise((end) => signal.addEventListener("abort", end));
      return { status: 204 }; // the client is gone
    },
  });
}
