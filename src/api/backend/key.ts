import { openFields } from "../../base/fields.ts";
import { Problem } from "../../base/problem.ts";
import { actorOf, insertAudit } from "../../store/audit.ts";
import { type KeyRing, type RingKey, ROTATION_LEAD_MS } from "../../store/key_ring.ts";
import { bringsBody, readJson } from "../../http/body.ts";
import { listResponse, readPagination } from "../pagination.ts";
import { emptyResponse, jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { ProtectedContext, ProtectedRoute } from "../route.ts";
import { BACKEND_ROUTE, type BackendOptions } from "./backend_route.ts";

/** What the backend's keys work with. */
export interface KeyAdministrationOptions extends BackendOptions {
  readonly keys: KeyRing;
}

/** /backend/key: the keys that access tokens are signed with, their public parts alone. */
export function keyRoutes(options: KeyAdministrationOptions): ProtectedRoute[] {
  const { keys, now } = options;
  const collection = { ...BACKEND_ROUTE, path: "/backend/key" };
  const audit = ({ caller, request }: ProtectedContext, action: string, target: string) =>
    insertAudit({ ...actorOf(caller, request), action, target }, now());
  const toRecord = (key: RingKey) => describeKey(key, keys.signing().kid, now());

  return [
    {
      ...collection,
      method: "GET",
      summary: "List the keys that are published",
      async handle({ request }) {
        const { limit, before } = readPagination(request);
        const rest = keys.published().filter(({ kid }) => kid < before)
          .sort((a, b) => a.kid < b.kid ? 1 : -1);
        const items = rest.slice(0, limit);
        return listResponse(
          { items, next: rest.length > limit ? items.at(-1)?.kid : undefined },
          toRecord,
        );
      },
    },
    {
      ...collection,
      method: "POST",
      summary: "Make a key that signs in 10 minutes, or at once",
      async handle(context) {
        const leadMs = await readsAtOnce(context, options.maxBodyBytes) ? 0 : ROTATION_LEAD_MS;
        const key = await keys.rotate(leadMs, (kid) => [audit(context, "key.rotate", kid)]);
        const location = `${options.basePath}${collection.path}/${key.kid}`;
        return jsonResponse(201, toRecord(key), { Location: location, ...NO_STORE });
      },
    },
    {
      ...collection,
      path: `${collection.path}/:kid`,
      method: "DELETE",
      summary: "Withdraw a key and every token that it signed at once",
      async handle(context) {
        const kid = context.params["kid"] ?? "";
        if (!await keys.withdraw(kid, [audit(context, "key.withdraw", kid)])) {
          throw new Problem(404, "not_found", "There is no such key.");
        }
        return emptyResponse(204);
      },
    },
  ];
}

/** Whether the body, which may be missing, says `{"at_once": true}`. */
async function readsAtOnce({ request }: ProtectedContext, maxBodyBytes: number): Promise<boolean> {
  if (!bringsBody(request)) return false;
  const fields = openFields(await readJson(request, maxBodyBytes));
  const isAtOnce = fields.flag("at_once") ?? false;
  fields.finish("request for a new key");
  return isAtOnce;
}

function describeKey(key: RingKey, signing: string, nowMs: number): Record<string, unknown> {
  const { kid, alg, jwk, publishedUntilMs } = key;
  const status = kid === signing ? "signing" : key.signsFromMs > nowMs ? "pending" : "retired";
  return {
    kid,
    alg,
    status,
    created_at: new Date(key.createdAtMs).toISOString(),
    signs_from: new Date(key.signsFromMs).toISOString(),
    published_until: publishedUntilMs === Infinity
      ? null
      : new Date(publishedUntilMs).toISOString(),
    jwk,
  };
}
