import type { HttpRequest } from "../base/http_message.ts";
import { Problem } from "../base/problem.ts";
import type { Handler } from "./handle.ts";

/**
 * The same handler, without the callbacks of this service: an endpoint that dispatches what it is
 * subscribed to, by whatever name of this service, would call itself without end. Another Gatepost's
 * callbacks are requests as any, and so are those that somebody passes on under a name of its own.
 *
 * @param isOwnDelivery whether this service has a delivery of that id
 */
export function refuseOwnCallbacks(
  handle: Handler,
  isOwnDelivery: (id: string) => Promise<boolean>,
): Handler {
  return (request, params, caller) => {
    const id = callbackOf(request);
    if (id === undefined) return handle(request, params, caller);
    return isOwnDelivery(id).then((isOwn) => {
      if (!isOwn) return handle(request, params, caller);
      throw new Problem(403, "own_callback", "A callback of this service does not come to itself.");
    });
  };
}

/** The delivery that a request of a Gatepost carries. */
function callbackOf({ headers }: HttpRequest): string | undefined {
  if (headers["user-agent"]?.startsWith("Gatepost/") !== true) return undefined;
  const id = headers["webhook-id"];
  return typeof id === "string" ? id : undefined;
}
