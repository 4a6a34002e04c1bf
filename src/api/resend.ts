import { recordOf, toFields } from "../base/fields.ts";
import { idOf, idTimeMs, newId } from "../base/id.ts";
import { conflict } from "../base/problem.ts";
import {
  COUNT,
  described,
  FLAG,
  type InferMembers,
  named,
  object,
  oneOf,
  optional,
  record,
  TEXT,
} from "../base/shape.ts";
import { TIME } from "../base/time.ts";
import { DELIVERY_ID } from "../event/delivery_record.ts";
import { jsonResponse } from "../http/respond.ts";
import type { Caller } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import { listPart } from "../store/list.ts";
import {
  continueResend,
  countResend,
  findResend,
  insertResend,
  newResend,
  type Resend,
  resendDeliveries,
  RESEND_LIST,
  RESEND_STATES,
  SELECTION,
  stopResend,
} from "../store/resends.ts";
import { type Actor, type Administration, found, storeAudited } from "./administration.ts";
import { backend, consumer, type Operation, type Side } from "./operation.ts";
import { pageOf, pagination, toPageRecord } from "./pagination.ts";
import { checkRecentLogin } from "./recent_login.ts";
import { getSubscription } from "./subscription.ts";

const ID = idOf("w");
/** To send more deliveries than this again, the caller needs a recent login. */
const RECENT_LOGIN_ABOVE = 10_000;

const OPTIONS = {
  dry_run: optional(described("Sends nothing; the response says how many would be sent.", FLAG)),
  first: optional(described("Sends only the first of them, as a trial.", oneOf("one"))),
};
const { subscription, event, name, endpoint, ...OWN_SELECTION } = SELECTION;

export const NewResend = named("Resend", object({ ...SELECTION, ...OPTIONS }));

/** The same for the deliveries of one subscription. */
export const OwnResend = named("OwnResend", object({ ...OWN_SELECTION, ...OPTIONS }));

const COUNTED = { count: described("How many deliveries; counted up to a million.", COUNT) };

/** How many deliveries are sent again, and the id of the resend or of the trial's delivery. */
export const RESENDS_STARTED = {
  200: named("ResendCount", record(COUNTED)),
  202: named("ResendStarted", record({
    ...COUNTED,
    id: optional(described("The resend's id; absent if there is nothing to send.", ID)),
    delivery: optional(described("The delivery that was sent as a trial.", DELIVERY_ID)),
  })),
};

const ResendRecord = named("ResendState", record({
  id: ID,
  actor: TEXT,
  state: oneOf(...RESEND_STATES),
  ...SELECTION,
  since: optional(TIME),
  until: optional(TIME),
  ...COUNTED,
  done: described("How many have been queued again so far.", COUNT),
  created_at: TIME,
  ended_at: optional(TIME),
}));

/** Path parameters. /consumer: a subscription's `id`, and `resend`. /backend: a resend's `id`. */
type Params = { readonly id?: string; readonly resend?: string };

/** Operations on resends: on all, or on those that the caller started for a subscription. */
export function resendOperations(side: Side, services: Administration): Operation[] {
  const { database, now } = services;
  const isOwn = side === "/consumer";
  const [make, path, key, of] = isOwn
    ? [consumer, "/consumer/subscription/:id/resend", "resend", "OfSubscription"] as const
    : [backend, "/backend/resend", "id", ""] as const;
  const { state, ...others } = RESEND_LIST.filters;

  /** Returns what the resends that the caller may see have in common. */
  async function wantedOf({ id = "" }: Params, caller: Caller) {
    if (!isOwn) return {};
    const subscription = await getSubscription(database, id, caller);
    return { subscription: subscription.id, actor: caller.sub };
  }

  async function find(params: Params, caller: Caller): Promise<Resend> {
    const { subscription, actor } = await wantedOf(params, caller);
    const one = await findResend(database, params.resend ?? params.id ?? "");
    const isWanted = !isOwn || one?.actor === actor && one?.selection.subscription === subscription;
    return found(isWanted ? one : undefined, "resend");
  }

  return [
    make("GET", path, `listResends${of}`, "List resends", {
      query: { ...pagination(ID), state, ...isOwn ? {} : others },
      returns: pageOf(ResendRecord),
      async handle({ params, query, caller }) {
        const given = { ...query, ...await wantedOf(params, caller) };
        return toPageRecord(await listPart(database, RESEND_LIST, given), toRecord);
      },
    }),
    make("GET", `${path}/:${key}`, `getResend${of}`, "One resend and its progress", {
      returns: ResendRecord,
      handle: async ({ params, caller }) => toRecord(await find(params, caller)),
    }),
    make("DELETE", `${path}/:${key}`, `stopResend${of}`,
      "Stop a resend; what it has queued is still sent", {
      refuses: [409],
      async handle({ params, ...context }) {
        const { id, state } = await find(params, context.caller);
        const stop = stopResend(id, now());
        const [stopped] = await storeAudited(context, "delivery.stop_resend", id, [stop], services);
        if (stopped !== 1) throw conflict(`The resend has ended: it is ${state}.`);
      },
    }),
  ];
}

/**
 * Stores a resend and sends its first deliveries. A trial sends only one, a dry run none. Throws
 * Problem 409 while another resend of the same subscription runs.
 */
export async function startResend(
  context: Actor,
  { dry_run, first: trial, ...selection }: InferMembers<typeof SELECTION & typeof OPTIONS>,
  services: Administration & Pick<Services, "heavy">,
) {
  const { database, heavy, now, wake } = services;
  const id = newId("w", now());
  const resend = newResend(id, context.caller.sub, selection);
  const { count: all, first } = await countResend(heavy, resend);
  const count = trial ? Math.min(all, 1) : all;
  if (dry_run) return jsonResponse(200, { count });
  if (first === undefined) return jsonResponse(202, { count });
  if (count > RECENT_LOGIN_ABOVE) await checkRecentLogin(context.caller, services);
  const [statements, target, refusal] = trial
    ? [resendDeliveries([first], now(), selection.status), first, "The delivery has just changed."]
    : [[insertResend({ ...resend, total: count })], selection.subscription ?? selection.status,
      "Another resend of this subscription is running."];
  const [stored] = await storeAudited(context, "delivery.resend", target, statements, services);
  if (stored !== 1) throw conflict(refusal);
  if (trial) return jsonResponse(202, { count, delivery: first });
  // The resend is stored: even if its first step fails here, the distributor continues it.
  await Promise.allSettled([continueResend(database, resend, now())]);
  wake();
  return jsonResponse(202, { id, count });
}

const toResendRecord = recordOf(ResendRecord);

function toRecord({ selection, ...resend }: Resend) {
  return toResendRecord({
    ...resend,
    ...toFields(selection),
    count: resend.total,
    createdAtMs: idTimeMs(resend.id),
  });
}
