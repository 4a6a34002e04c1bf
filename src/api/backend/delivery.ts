import { openFields } from "../../base/fields.ts";
import { Problem } from "../../base/problem.ts";
import {
  type Attempt,
  type Delivery,
  DELIVERY_STATUSES,
  findDelivery,
  listAttempts,
  listDeliveries,
} from "../../store/delivery_lists.ts";
import { findFailed, resendDeliveries } from "../../store/resends.ts";
import { readJson } from "../../http/body.ts";
import { toAttemptRecord, toDeliveryRecord } from "../delivery_record.ts";
import { checkId, checkTime, checkWord, listResponse, readFilteredPagination } from "../pagination.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { PathParams, ProtectedContext, ProtectedRoute } from "../route.ts";
import { BACKEND_ROUTE, type BackendOptions, found, storeAudited } from "./backend_route.ts";

/** /backend/delivery: every delivery, and sending failed ones again. */
export function managedDeliveryRoutes(options: BackendOptions): ProtectedRoute[] {
  const { database, maxBodyBytes, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/delivery" };
  const item = { ...BACKEND_ROUTE, path: "/backend/delivery/:id" };
  const filters = {
    status: checkWord(DELIVERY_STATUSES),
    subscription: checkId("s"),
    event: checkId("e"),
  };
  const find = async (params: PathParams) =>
    found(await findDelivery(database, params["id"] ?? ""), "delivery");

  return [
    {
      ...collection,
      method: "GET",
      summary: "List deliveries",
      async handle({ request }) {
        const { page, filter } = readFilteredPagination(request, filters);
        const status = DELIVERY_STATUSES.find((each) => each === filter.status);
        return listResponse(await listDeliveries(database, { ...filter, status }, page), toRecord);
      },
    },
    {
      ...item,
      method: "GET",
      summary: "One delivery with its attempts, and how each answer began",
      async handle({ params }) {
        const delivery = await find(params);
        const attempts = await listAttempts(database, delivery.id);
        const record = { ...toRecord(delivery), attempts: attempts.map(toFullAttemptRecord) };
        return jsonResponse(200, record, NO_STORE);
      },
    },
    {
      ...item,
      path: `${item.path}/resend`,
      method: "POST",
      summary: "Send a failed delivery again, with a fresh budget of attempts",
      async handle(context) {
        const { id, status } = await find(context.params);
        const refused = `It is ${status}, or its subscription has ended; only a failed one of a ` +
          "subscription that is active or paused is sent again.";
        if (status !== "failed") throw new Problem(409, "conflict", refused);
        const audited = { action: "delivery.resend", target: id };
        const resend = resendDeliveries([id], now());
        const [resent] = await storeAudited(context, resend, audited, options);
        if (resent !== 1) throw new Problem(409, "conflict", refused);
        return jsonResponse(202, { id }, NO_STORE);
      },
    },
    {
      ...collection,
      path: `${collection.path}/resend`,
      method: "POST",
      summary: "Send again what failed of the events dispatched from then to then",
      async handle(context) {
        const count = await resendFailed(context, options);
        return jsonResponse(202, { count }, NO_STORE);
      },
    },
  ];

  /** Batch by batch, so that no other write waits for long; the first has the audit entry. */
  async function resendFailed(
    context: ProtectedContext,
    backend: BackendOptions,
  ): Promise<number> {
    const selection = parseResend(await readJson(context.request, maxBodyBytes));
    const audited = { action: "delivery.resend", target: selection.subscription ?? "failed" };
    let count = 0;
    for await (const ids of findFailed(database, selection)) {
      const resend = resendDeliveries(ids, now());
      const [resent = 0] = count === 0
        ? await storeAudited(context, resend, audited, backend)
        : await database.write(resend);
      count += resent;
      options.wake();
      if (context.request.signal.aborted) break;
    }
    return count;
  }
}

/** Reads which failed deliveries are meant; throws Problem 400 with every fault. */
function parseResend(value: unknown) {
  const fields = openFields(value);
  if (!fields.has("status")) fields.report("status", "Is required.");
  fields.word("status", ["failed"]);
  const since = fields.text("since", checkTime);
  const until = fields.text("until", checkTime);
  const subscription = fields.text("subscription", checkId("s"));
  fields.finish("request to send deliveries again");
  return {
    sinceMs: since === undefined ? undefined : Date.parse(since),
    untilMs: until === undefined ? undefined : Date.parse(until),
    subscription,
  };
}

/** A delivery as the backend shows it: `event` is the event's id, `name` its name. */
export function toRecord(delivery: Delivery): Record<string, unknown> {
  const { id, subscription, ...rest } = toDeliveryRecord(delivery);
  return { id, subscription, ...rest, event: delivery.event, name: delivery.eventName };
}

function toFullAttemptRecord(attempt: Attempt): Record<string, unknown> {
  const { snippet } = attempt;
  return { ...toAttemptRecord(attempt), ...(snippet !== null && { snippet }) };
}
