import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { Cidr } from "../base/cidr.ts";
import type { HttpRequest } from "../base/http_message.ts";
import { clientAddress } from "./client_address.ts";
import type { IncomingBody } from "./node_body.ts";
import { newRequestId, readRequestId } from "./request_id.ts";

/**
 * A request of node:http as a plain record. It is a class, so that the getters are on a prototype.
 * In an object literal they would cost as much as Node's own work for a request, and would keep
 * their closures alive until a full collection.
 */
export class NodeRequest implements HttpRequest {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: IncomingHttpHeaders;
  readonly #incoming: IncomingMessage;
  readonly #body: IncomingBody;
  readonly #trustedProxies: readonly Cidr[];
  #controller: AbortController | undefined; // made at first use

  constructor(incoming: IncomingMessage, body: IncomingBody, trustedProxies: readonly Cidr[]) {
    const { headers, method = "GET", url = "/" } = incoming;
    this.id = readRequestId(headers["x-request-id"]) ?? newRequestId();
    this.method = method;
    [this.path, this.query] = splitTarget(url);
    this.headers = headers;
    this.#incoming = incoming;
    this.#body = body;
    this.#trustedProxies = trustedProxies;
  }

  get address(): string {
    const forwarded = String(this.headers["x-forwarded-for"] ?? "");
    const { remoteAddress = "" } = this.#incoming.socket;
    return clientAddress(remoteAddress, forwarded, this.#trustedProxies);
  }

  get signal(): AbortSignal {
    return (this.#controller ??= new AbortController()).signal;
  }

  get isGone(): boolean {
    const { destroyed, readableEnded } = this.#incoming.socket;
    return destroyed || readableEnded;
  }

  abort(): void {
    (this.#controller ??= new AbortController()).abort();
  }

  readBody(maxBytes: number): Promise<Buffer> {
    return this.#body.read(maxBytes);
  }
}

/** Returns path and query of a request target in origin-form or absolute-form (RFC 9112 §3.2). */
function splitTarget(target: string): [path: string, query: string] {
  const origin = target.startsWith("/") ? "" : /^https?:\/\/[^/?#@]+/i.exec(target)?.[0] ?? "";
  const rest = target.slice(origin.length);
  const mark = rest.indexOf("?");
  return mark < 0 ? [rest || "/", ""] : [rest.slice(0, mark) || "/", rest.slice(mark + 1)];
}
