import type { LoadedEndpoint } from "../hosting/check.ts";
import { createHandler, type HandlerOptions } from "../hosting/handle.ts";
import { refuseOwnCallbacks } from "../hosting/own_callback.ts";
import { bearerChallenge } from "../api/bearer.ts";
import type { Route } from "../api/route.ts";
import { createRouter, type Router } from "../api/router.ts";

/** What the endpoints of modules are answered with. */
export interface HostedRouterOptions extends Omit<HandlerOptions, "endpoint" | "challenge"> {
  /** Whether this service has a delivery of that id. */
  readonly isOwnDelivery: (id: string) => Promise<boolean>;
}

/** Makes the endpoints of modules into routes as the pipeline knows them. */
export function hostedRouter(
  endpoints: readonly LoadedEndpoint[],
  options: HostedRouterOptions,
): Router {
  return createRouter(endpoints.map((endpoint) => toRoute(endpoint, options)));
}

function toRoute(endpoint: LoadedEndpoint, options: HostedRouterOptions): Route {
  const challenge = bearerChallenge(options.baseUrl, endpoint.scopes);
  const handle = refuseOwnCallbacks(
    createHandler({ ...options, endpoint, challenge }),
    options.isOwnDelivery,
  );
  const base = {
    method: endpoint.method,
    path: endpoint.pattern.text,
    cors: true,
    summary: `Hosted by ${endpoint.file}`,
  };
  return endpoint.scopes === undefined
    ? {
      ...base,
      access: "public",
      handle: ({ request, params }) => handle(request, params, undefined),
    }
    : {
      ...base,
      access: endpoint.scopes,
      handle: ({ request, params, caller }) => handle(request, params, caller),
    };
}
