import type { Refusal } from "gatepost";

/** An error of the shop's rules, thrown anywhere: the service responds with its `refusal`. */
export class ShopError extends Error {
  readonly refusal: Refusal;

  constructor(status: number, detail: string, more: Pick<Refusal, "errors" | "headers"> = {}) {
    super(detail);
    this.refusal = { status, detail, ...more };
  }
}
