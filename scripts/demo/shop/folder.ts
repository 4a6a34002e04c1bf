import type { Context, Refusal, Scopes } from "gatepost";
import { findCustomer } from "./lib/customer.ts";
import { ShopError } from "./lib/shop_error.ts";

/** What the scopes allow, for the consent page. */
export const scopes: Scopes = {
  "shop:order": "Place and cancel orders in your name",
  "shop:staff": { description: "Change products and customers of the shop", grave: true },
};

/** Runs before every endpoint of this folder and those below. */
export function before({ caller }: Context): void {
  if (caller === undefined || findCustomer(caller.sub).blocked === 0) return;
  throw new ShopError(403, "This customer is blocked.");
}

/** Handles the errors of this folder's endpoints: a busy database is no failure of the shop. */
export function onError(error: unknown): Refusal | void {
  const isBusy = error instanceof Error && "errcode" in error && error.errcode === 5; // SQLITE_BUSY
  if (!isBusy) return;
  return { status: 503, detail: "The shop is busy.", headers: { "retry-after": 1 } };
}
