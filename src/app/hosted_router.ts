import type { LoadedEndpoint } from "../hosting/check.ts";
import { createHandler, type HandlerOptions } from "../hosting/handle.ts";
import { createMatcher } from "../hosting/match.ts";
import { refuseOwnCallbacks } from "../hosting/own_callback.ts";
import type { Route } from "../http/route.ts";
import type { Router } from "../http/router.ts";

/** What the endpoints of modules are answered with. */
export interface HostedRouterOptions extends Omit<HandlerOptions, "endpoint"> {
  /** Whether this service has a delivery of that id. */
  readonly isOwnDelivery: (id: string) => Promise<boolean>;
}

/** Makes the endpoints of modules into routes as the pipeline knows them. */
export function hostedRouter(
  endpoints: readonly LoadedEndpoint[],
  options: HostedRouterOptions,
): Router {
  const match = createMatcher(endpoints.map((endpoint) => ({
    method: endpoint.method,
    pattern: endpoint.pattern,
    route: toRoute(endpoint, options),
  })));
  return (method, path) => {
    const found = match(method, path);
    switch (found.kind) {
      case "found": {
        const { route } = found.endpoint;
        return { route, params: found.params, methods: [], sibling: route };
      }
      case "other_methods":
        return {
          route: undefined,
          params: {},
          methods: found.allowed,
          sibling: found.sibling.route,
        };
      case "none":
        return undefined;
      default:
        return found satisfies never;
    }
  };
}

function toRoute(endpoint: LoadedEndpoint, options: HostedRouterOptions): Route {
  const handle = refuseOwnCallbacks(createHandler({ ...options, endpoint }), options.isOwnDelivery);
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
