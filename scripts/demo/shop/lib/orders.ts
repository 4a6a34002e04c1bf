import { randomUUID } from "node:crypto";
import type { Customer } from "./customer.ts";
import { change, rows, transaction } from "./database.ts";
import { noteEvent } from "./outbox.ts";
import type { NewOrder, Order, Product } from "./schemas.ts";
import { ShopError } from "./shop_error.ts";

const FIELDS = "id, reference, sku, quantity, total_cents, status";

/** Stores an order and its event in one transaction; the same reference is the same order. */
export function placeOrder(customer: Customer, wanted: NewOrder): {
  readonly order: Order;
  readonly isNew: boolean;
} {
  const { reference, sku, quantity } = wanted;
  return transaction(() => {
    const [known] = rows<Order>(
      `SELECT ${FIELDS} FROM orders WHERE customer = ? AND reference = ?`,
      customer.id,
      reference,
    );
    if (known !== undefined) return { order: known, isNew: false };
    const order: Order = {
      id: randomUUID(),
      reference,
      sku,
      quantity,
      total_cents: Math.round(takeStock(sku, quantity) * (1 - customer.discount_percent / 100)),
      status: "placed",
    };
    change(
      `INSERT INTO orders (${FIELDS}, customer) VALUES (?, ?, ?, ?, ?, ?, ?)`,
      order.id,
      reference,
      sku,
      quantity,
      order.total_cents,
      order.status,
      customer.id,
    );
    noteEvent("shop.order.placed", order.id, order);
    return { order, isNew: true };
  });
}

/** Takes products out of stock and returns their price. */
function takeStock(sku: string, quantity: number): number {
  const [product] = rows<Product>("SELECT * FROM products WHERE sku = ?", sku);
  if (product === undefined) {
    const errors = [{ pointer: "/sku", detail: "There is no such product." }];
    throw new ShopError(422, "This cannot be ordered.", { errors });
  }
  if (product.stock < quantity) {
    const errors = [{ pointer: "/quantity", detail: `At most ${product.stock} are left.` }];
    throw new ShopError(409, "Too few are left.", { errors });
  }
  change("UPDATE products SET stock = stock - ? WHERE sku = ?", quantity, sku);
  return product.price_cents * quantity;
}

/** A customer's orders. */
export function listOrders(customer: Customer): readonly Order[] {
  return rows<Order>(`SELECT ${FIELDS} FROM orders WHERE customer = ? ORDER BY rowid`, customer.id);
}

/** Returns a customer's order; throws 404 for an order of somebody else. */
export function findOrder(customer: Customer, id: string): Order {
  const order = listOrders(customer).find((one) => one.id === id);
  if (order === undefined) throw new ShopError(404, "There is no such order.");
  return order;
}

/** Cancels an order that is not paid for, and stores its event. */
export function cancelOrder(customer: Customer, id: string): Order {
  return transaction(() => {
    const { status, ...rest } = findOrder(customer, id);
    if (status !== "placed") {
      throw new ShopError(409, `An order that is ${status} stays as it is.`, {
        headers: { link: '</shop/returns>; rel="help"' },
      });
    }
    const order: Order = { ...rest, status: "cancelled" };
    change("UPDATE orders SET status = 'cancelled' WHERE id = ?", id);
    change("UPDATE products SET stock = stock + ? WHERE sku = ?", rest.quantity, rest.sku);
    noteEvent("shop.order.cancelled", id, order);
    return order;
  });
}

/** Marks an order as paid; returns whether that has changed it. */
export function markPaid(id: string): boolean {
  return change("UPDATE orders SET status = 'paid' WHERE id = ? AND status = 'placed'", id) > 0;
}
