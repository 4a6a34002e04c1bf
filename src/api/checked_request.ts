import type { HttpRequest } from "../base/exchange.ts";

/**
 * A request whose body may come slowly: once it is in, the check is made again. A class for the
 * reason that NodeRequest is one.
 */
export class CheckedRequest implements HttpRequest {
  readonly id: string;
  readonly method: string;
  readonly path: string;
  readonly query: string;
  readonly headers: HttpRequest["headers"];
  readonly #request: HttpRequest;
  readonly #check: () => Promise<unknown>;

  /** @param check rejects where the request is not to be answered any more */
  constructor(request: HttpRequest, check: () => Promise<unknown>) {
    this.id = request.id;
    this.method = request.method;
    this.path = request.path;
    this.query = request.query;
    this.headers = request.headers;
    this.#request = request;
    this.#check = check;
  }

  get address(): string {
    return this.#request.address;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get isGone(): boolean {
    return this.#request.isGone;
  }

  abort(): void {
    this.#request.abort();
  }

  async readBody(maxBytes: number): Promise<Buffer> {
    const body = await this.#request.readBody(maxBytes);
    await this.#check();
    return body;
  }
}
