import { recordOf } from "../../base/fields.ts";
import { JWK } from "../../base/jwk.ts";
import { SIGNING_ALGORITHMS } from "../../base/jwt.ts";
import {
  described,
  FLAG,
  named,
  nullable,
  object,
  oneOf,
  optional,
  record,
  TEXT,
} from "../../base/shape.ts";
import { TIME } from "../../base/time.ts";
import type { Services } from "../../services.ts";
import { actorOf } from "../../store/audit.ts";
import { type RingKey, ROTATION_LEAD_MS } from "../../store/key_ring.ts";
import { locatedResponse, notFound } from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { checkRecentLogin } from "../recent_login.ts";
import { listingOf } from "../pagination.ts";

const PATH = "/backend/key";

export const NewKey = named("NewKey", object({
  at_once: optional(described("Signs at once instead of in 10 minutes, as after a leak.", FLAG)),
}));

const KeyRecord = named("Key", record({
  kid: TEXT,
  alg: oneOf(...SIGNING_ALGORITHMS),
  status: oneOf("pending", "signing", "retired"),
  created_at: TIME,
  signs_from: TIME,
  published_until: nullable(TIME),
  jwk: JWK,
}));
const toKeyRecord = recordOf(KeyRecord);

/** /backend/key: the keys that sign access tokens; only their public parts are shown. */
export function keyOperations(services: Pick<Services, "keys" | "now" | "database">): Operation[] {
  const { keys, now } = services;
  const toRecord = (key: RingKey) => {
    const isSigning = key.kid === keys.findSigning()?.kid;
    return toKeyRecord({
      ...key,
      status: isSigning ? "signing" : key.signsFromMs > now() ? "pending" : "retired",
      publishedUntilMs: key.publishedUntilMs === Infinity ? null : key.publishedUntilMs,
    });
  };

  return [
    backend("GET", PATH, "listSigningKeys", "List the keys that are published",
      listingOf(KeyRecord, ({ kid }) => kid, "down", () => keys.published().map(toRecord))),
    backend("POST", PATH, "rotateSigningKey", "Make a key that signs in 10 minutes, or at once", {
      body: optional(NewKey),
      responses: { 201: KeyRecord },
      async handle({ body, caller, request }) {
        const leadMs = body?.at_once ? 0 : ROTATION_LEAD_MS;
        const key = await keys.rotate(leadMs, actorOf(caller, request));
        return locatedResponse(201, request.path, key.kid, toRecord(key));
      },
    }),
    backend("DELETE", `${PATH}/:kid`, "withdrawSigningKey",
      "Withdraw a key at once, and every token that it signed", {
      async handle({ params: { kid }, caller, request }) {
        await checkRecentLogin(caller, services);
        if (!await keys.withdraw(kid, actorOf(caller, request))) throw notFound("key");
      },
    }),
  ];
}
