import { createCache } from "../../base/cache.ts";
import { described, named, type Schema, shown } from "../../base/shape.ts";
import type { DeclaredEvent } from "../../event/event.ts";
import { OWN_EVENTS } from "../../event/own_events.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { version } from "../../version.ts";
import { bearerToken } from "../bearer.ts";
import { type Operation, published } from "../operation.ts";

/** Whether the reader may see what needs these scopes (possibly none). */
export type IsKnown = (scopes: readonly string[]) => boolean;

const Document = named("Document", described("See its specification.", shown({ type: "object" })));

/** How many documents are cached: one for each set of scopes that makes a difference. */
const DOCUMENT_LIMIT = 16;

/**
 * GET of a document. Without a token it has only what needs no token; with a token also what its
 * scopes allow; with scope `backend` everything. `create` makes it for one kind of reader.
 */
export function documentOperation(
  path: string,
  id: string,
  summary: string,
  create: (isKnown: IsKnown) => Schema,
  { bearer, scopes }: Pick<Services, "bearer" | "scopes">,
): Operation {
  // The buffers are shared, so clients that do not read their responses hold no copies.
  const documents = createCache<Buffer>(DOCUMENT_LIMIT);
  return published("GET", path, id, summary, {
    security: "token or none",
    responses: { 200: Document },
    refuses: [401],
    async handle({ request }) {
      const caller = bearerToken(request) === undefined
        ? undefined
        : await bearer.authenticate(request, []);
      const held = scopes.filter((scope) => caller?.scopes.includes(scope));
      const key = caller ? `with ${held.join(" ")}` : "";
      let body = documents.get(key);
      if (!body) {
        const isKnown: IsKnown = (needed) =>
          caller !== undefined &&
          (held.includes(BACKEND_SCOPE) || needed.every((scope) => held.includes(scope)));
        body = Buffer.from(JSON.stringify(create(isKnown)));
        documents.set(key, body);
      }
      const headers = {
        "Content-Type": "application/json",
        "Cache-Control": caller ? "private, no-cache" : "no-cache",
        Vary: "Authorization",
      };
      return { status: 200, headers, body };
    },
  });
}

/** The member `info` of every document. */
export const INFO = {
  title: "Gatepost",
  version,
  description: "Access tokens, hosted endpoints, and the delivery of their events.",
};

/** Returns the events that a reader may see; the service's own come last. */
export function knownEvents(events: readonly DeclaredEvent[], isKnown: IsKnown): DeclaredEvent[] {
  return [...events.filter(({ scope }) => scope.length === 0 || isKnown(scope)), ...OWN_EVENTS];
}
