import { createCache } from "../../base/cache.ts";
import { BACKEND_SCOPE } from "../../oauth/principal.ts";
import { type Bearer, bearerToken } from "../bearer.ts";
import type { PublicRoute } from "../route.ts";
import { createOpenApi, type OpenApiOptions } from "./openapi.ts";

/** Documents that are kept, one for each set of scopes that makes a difference. */
const DOCUMENT_LIMIT = 16;

/**
 * GET /openapi.json: the document of these routes and of itself. Without a token it has no endpoint
 * and no event that needs one; with a token also what its scopes open, and all with `backend`.
 */
export function openApiRoute(options: OpenApiOptions, bearer: Bearer): PublicRoute {
  // Clients that do not take an answer hold no copies of their own.
  const documents = createCache<Buffer>(DOCUMENT_LIMIT);
  const route: PublicRoute = {
    method: "GET",
    path: "/openapi.json",
    access: "public",
    cors: "anyone",
    summary: "This document",
    async handle({ request }) {
      const caller = bearerToken(request) === undefined
        ? undefined
        : await bearer.authenticate(request, []);
      const held = options.scopes.filter((scope) => caller?.scopes.includes(scope));
      const key = caller ? `with ${held.join(" ")}` : "";
      let body = documents.get(key);
      if (!body) {
        const isKnown = (scopes: readonly string[]) =>
          caller !== undefined &&
          (held.includes(BACKEND_SCOPE) || scopes.every((scope) => held.includes(scope)));
        const document = createOpenApi({ ...options, routes: [...options.routes, route] }, isKnown);
        body = Buffer.from(JSON.stringify(document));
        documents.set(key, body);
      }
      const headers = {
        "Content-Type": "application/json",
        "Cache-Control": caller ? "private, no-cache" : "no-cache",
        Vary: "Authorization",
      };
      return { status: 200, headers, body };
    },
  };
  return route;
}
