import { pathOf } from "../base/base_url.ts";
import { MAX_FORM_BYTES } from "../base/form.ts";
import { discardStream, type HttpRequest, type HttpResponse } from "../base/http_message.ts";
import { Problem } from "../base/problem.ts";
import { bearerChallenge } from "../api/bearer.ts";
import { PAGES_OF_APPS } from "../api/cors.ts";
import { type Keep, respondOnce } from "../api/idempotency.ts";
import type { Operation } from "../api/operation.ts";
import type { Caller } from "../mod.ts";
import type { Services } from "../services.ts";
import { hasDelivery } from "../store/deliveries.ts";
import type { LoadedEndpoint } from "./check_endpoint.ts";
import { addToContext, createContext } from "./context.ts";
import { collectEvents, type DispatchServices } from "./dispatch.ts";
import { createInputReader, type Input } from "./input.ts";
import { isReturnedRefusal, toProblem } from "./refusal.ts";
import { toResponse } from "./result.ts";

type Exchange = Parameters<Operation["handle"]>[0];

/**
 * Turns an endpoint of a module into an operation, which reads the body, calls the handler, stores
 * its events and only then responds. mod/endpoint.ts has the rules for authors.
 */
export function hostedOperation(
  endpoint: LoadedEndpoint,
  services: DispatchServices & Pick<Services, "issuer">,
): Operation {
  const { exportName, method, pattern, scopes, emits, maxBodyBytes, output, limit } = endpoint;
  const { config, issuer, database, log } = services;
  const { origin } = new URL(issuer);
  const basePath = pathOf(issuer); // parsed once: a URL costs as much as routing
  const maxBytes = maxBodyBytes ?? config.maxBodyBytes;
  const maxFormBytes = maxBodyBytes ?? Math.min(maxBytes, MAX_FORM_BYTES);
  const readInput = createInputReader(endpoint, { maxBytes, maxFormBytes });
  const route = `${method} ${pattern.text}`;
  const canCreate = ["POST", "PUT", "PATCH"].includes(method);

  async function refuseOwn(delivery: string): Promise<void> {
    if (!await hasDelivery(database, delivery)) return;
    throw new Problem(403, "own_callback", "This service does not call its own endpoints back.");
  }

  async function run(
    { request, caller, authenticateAgain }: Exchange,
    input: Input,
    keep: Keep = () => [],
  ): Promise<HttpResponse> {
    const by = { request: request.id, source: route, principal: caller?.sub };
    const collector = collectEvents(services, emits, by, endpoint.idempotent);
    const context = createContext(request, input, {
      caller: caller && pickCaller(caller), // hides what else is known of the token
      dispatch: collector.dispatch,
      log,
      origin,
      maxBytes,
      authenticateAgain,
    });
    let result: unknown;
    let response: HttpResponse;
    let kept: ReturnType<Keep> = [];
    try {
      for (const before of endpoint.before) addToContext(context, await before(context));
      result = await endpoint.handle(context);
      if (result instanceof Error || isReturnedRefusal(result)) throw result;
      response = confineWorker(toResponse(result), request, basePath);
      if (response.status < 500) kept = keep(response);
    } catch (error) {
      await Promise.allSettled([collector.close("drop")]); // a flush may still run
      if (result instanceof Response && result.body?.locked === false) {
        discardStream(request, result.body);
      }
      if (request.isGone) throw error; // no client waits, and nothing has failed
      const challenge = scopes ? bearerChallenge(issuer, request.path, { scopes }) : {};
      const refused = toProblem(error, endpoint.onError, context, challenge);
      throw await refused.catch((failure: unknown) => {
        const thrown = error instanceof Error && failure !== error && { thrown: error };
        const fields = { request_id: request.id, route, error: failure, ...thrown };
        log.error("endpoint failed", fields);
        const detail = "The request failed inside the service.";
        return new Problem(500, "internal", detail, { cause: failure });
      });
    }
    try {
      const stored = collector.close(response.status < 500 ? "store" : "drop", kept);
      if (stored) await stored;
    } catch (error) {
      if (response.body instanceof ReadableStream) discardStream(request, response.body);
      throw error;
    }
    return response;
  }

  function runOnce(exchange: Exchange, input: Input): Promise<HttpResponse> {
    if (!endpoint.idempotent) return run(exchange, input);
    const body = () => input.bytes ?? "";
    return respondOnce(services, exchange, body, (keep) => run(exchange, input, keep));
  }

  return {
    ...endpoint,
    id: route,
    path: pattern.text,
    access: scopes ?? "public",
    cors: endpoint.cors ?? PAGES_OF_APPS,
    summary: endpoint.summary ?? exportName,
    responses: output ? { 200: output, ...(canCreate && { 201: output }) } : {},
    refuses: limit ? [429] : [],
    /** Not an async function: each promise on the way costs every request. */
    handle(exchange) {
      const { request, params, authenticateAgain } = exchange;
      const delivery = callbackOf(request);
      const read = () => readInput(request, params, authenticateAgain);
      const input = delivery === undefined ? read() : refuseOwn(delivery).then(read);
      return input instanceof Promise
        ? input.then((input) => runOnce(exchange, input))
        : runOnce(exchange, input);
    },
  };
}

/**
 * Returns the delivery id of a callback from a Gatepost. An endpoint that dispatches the event it
 * receives, under any name of this service, would call itself without end. Callbacks of another
 * Gatepost are ordinary requests, and so are those that another program passes on.
 */
function callbackOf({ headers }: HttpRequest): string | undefined {
  const { "user-agent": agent, "webhook-id": id } = headers;
  return agent?.startsWith("Gatepost/") && typeof id === "string" ? id : undefined;
}

/**
 * Limits a service worker, which answers pages' requests in place of the server, to the first
 * segment of its script's path (Service Workers, Service-Worker-Allowed). Otherwise a worker at
 * `/x.js` would control the sign-in pages and the console of this origin.
 */
function confineWorker(response: HttpResponse, { headers, path }: HttpRequest, basePath: string) {
  if (headers["service-worker"] === undefined) return response;
  const [first] = path.slice(basePath.length + 1).split("/");
  const scope = { "service-worker-allowed": `${basePath}/${first}/` };
  return { ...response, headers: { ...response.headers, ...scope } };
}

function pickCaller({ sub, kind, clientId, scopes }: Caller): Caller {
  return { sub, kind, clientId, scopes };
}
