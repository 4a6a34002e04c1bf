import type { Caller } from "gatepost";
import { change, rows } from "./database.ts";

/** A customer, whose id is the subject of the token. */
export interface Customer {
  readonly id: string;
  readonly discount_percent: number;
  /** 0 or 1. */
  readonly blocked: number;
}

/** Returns the customer with this id; a new one is not stored. */
export function findCustomer(id: string): Customer {
  const [found] = rows<Customer>("SELECT * FROM customers WHERE id = ?", id);
  return found ?? { id, discount_percent: 0, blocked: 0 };
}

export function saveCustomer({ id, discount_percent, blocked }: Customer): void {
  change("INSERT OR REPLACE INTO customers VALUES (?, ?, ?)", id, discount_percent, blocked);
}

/** An endpoint's `before`: its handler gets `customer`. */
export function withCustomer({ caller }: { readonly caller: Caller }) {
  return { customer: findCustomer(caller.sub) };
}
