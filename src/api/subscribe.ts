import { newId } from "../base/id.ts";
import { conflict, Problem } from "../base/problem.ts";
import { refinedMember } from "../base/refined_member.ts";
import { randomBytes } from "../base/secret.ts";
import { described, named, shown, withMembers } from "../base/shape.ts";
import { formatSigningSecret } from "../event/signature.ts";
import {
  NewSubscription,
  SUBSCRIPTION_LIMIT,
  SubscriptionRecord,
  toSubscriptionRecord,
} from "../event/subscription.ts";
import { isOwnLogin, LOGIN_APP } from "../oauth/principal.ts";
import type { Services } from "../services.ts";
import {
  hasActiveGrant,
  insertSubscription,
  replaceSubscriptionSecret,
} from "../store/subscriptions.ts";
import {
  type Administration,
  changeAudited,
  locatedResponse,
  storeAudited,
} from "./administration.ts";
import { consumer, type Operation } from "./operation.ts";
import { checkEventAllowed, checkReachable, getSubscription, TAKEN } from "./subscription.ts";

const PATH = "/consumer/subscription";

const WithSecret = named("SubscriptionWithSecret", withMembers(SubscriptionRecord, {
  secret: described(
    "Signs callbacks (Standard Webhooks); shown here only.",
    shown<string>({ type: "string", pattern: "^whsec_" }),
  ),
}));

/** The operations that show a signing secret: subscribe, and replace the secret. Both audit it. */
export function subscribeOperations(
  services: Administration & Pick<Services, "seal" | "refuseEndpoint">,
): Operation[] {
  const { database, seal, now } = services;

  return [
    consumer("POST", PATH, "subscribe", "Subscribe to an event", {
      body: refinedMember(NewSubscription, "endpoint", checkReachable(services)),
      responses: { 201: WithSecret },
      refuses: [409],
      async handle({ body, ...context }) {
        const { caller } = context;
        await checkEventAllowed(database, body.event, caller);
        const createdAtMs = now();
        const id = newId("s", createdAtMs);
        const app = isOwnLogin(caller.clientId) ? LOGIN_APP : caller.clientId;
        const subscription = { ...body, principal: caller.sub, app, id, createdAtMs };
        const secret = formatSigningSecret(randomBytes(32));
        const grant = { id: caller.grantId, scopes: caller.scopes };
        const insert = insertSubscription({ ...subscription, secret, grant }, seal);
        const [inserted] =
          await storeAudited(context, "subscription.create", id, [insert], services, TAKEN);
        if (inserted !== 1) {
          await checkEventAllowed(database, body.event, caller);
          if (!await hasActiveGrant(database, caller.grantId)) {
            throw conflict("The grant of this token was revoked.");
          }
          throw new Problem(409, "limit", `There are ${SUBSCRIPTION_LIMIT} subscriptions already.`);
        }
        const record = toSubscriptionRecord({ ...subscription, status: "active" });
        return locatedResponse(201, context.request.path, id, { ...record, secret });
      },
    }),
    consumer("POST", `${PATH}/:id/secret`, "replaceSigningSecret",
      "Replace the signing secret; the old one also signs for a day", {
      returns: WithSecret,
      async handle({ params: { id }, ...context }) {
        const subscription = await getSubscription(database, id, context.caller);
        const secret = formatSigningSecret(randomBytes(32));
        const replace = replaceSubscriptionSecret(id, secret, now(), seal);
        await changeAudited(context, "subscription.rotate_secret", id, [replace], services);
        return { ...toSubscriptionRecord(subscription), secret };
      },
    }),
  ];
}
