import type { Order } from "./schemas.ts";

type Listener = (order: Order) => void;

const listeners = new Map<string, Set<Listener>>();

/** Reports a customer's order to the listeners of this process. */
export function announce(customer: string, order: Order): void {
  for (const listener of listeners.get(customer) ?? []) listener(order);
}

/** Calls `listener` for each change, until the returned function is called. */
export function listen(customer: string, listener: Listener): () => void {
  const here = listeners.get(customer) ?? new Set();
  listeners.set(customer, here.add(listener));
  return () => {
    here.delete(listener);
    if (here.size === 0) listeners.delete(customer);
  };
}
