import { createCache } from "../../base/cache.ts";
import { described, named, type Schema, shown } from "../../base/shape.ts";
import type { DeclaredEvent } from "../../event/event.ts";
import { OWN_EVENTS } from "../../event/own_events.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import type { Services } from "../../services.ts";
import { version } from "../../version.ts";
import { bearerToken } from "../bearer.ts";
import { document, type Operation } from "../operation.ts";

/** Whether the reader may know of what needs these scopes, of which there may be none. */
export type IsKnown = (scopes: readonly string[]) => boolean;

const Document = named("Document", described("By its specification.", shown({ type: "object" })));

/** Documents that are kept, one for each set of scopes that makes a difference. */
const DOCUMENT_LIMIT = 16;

/**
 * GET of a document. Without a token it has nothing that needs one; with a token also what its
 * scopes open, and all with `backend`. `create` makes it for one kind of reader.
 */
export function documentOperation(
  { create, id, path, summary }: Pick<Operation, "id" | "path" | "summary"> & {
    readonly create: (isKnown: IsKnown) => Schema;
  },
  { bearer, scopes }: Pick<Services, "bearer" | "scopes">,
): Operation {
  // Clients that do not read their response hold no copies of their own.
  const documents = createCache<Buffer>(DOCUMENT_LIMIT);
  return document("GET", path, id, summary, {
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

/** What a document says of itself. */
export const INFO = {
  title: "Gatepost",
  version,
  description: "Access tokens, hosted endpoints, and the delivery of their events.",
};

/** The events that a reader may know of; the service's own come last. */
export function knownEvents(events: readonly DeclaredEvent[], isKnown: IsKnown): DeclaredEvent[] {
  return [...events.filter(({ scope }) => scope.length === 0 || isKnown(scope)), ...OWN_EVENTS];
}
