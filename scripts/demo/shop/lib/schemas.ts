import type { Infer, JsonSchema } from "gatepost";

const SKU = { type: "string", pattern: "^[a-z]{1,20}$" } as const;
const ID = { type: "string", format: "uuid" } as const;

/** The parameters of paths below a product, and below an order. */
export const OF_PRODUCT = {
  type: "object",
  properties: { sku: SKU },
  required: ["sku"],
} as const satisfies JsonSchema;

export const OF_ORDER = {
  type: "object",
  properties: { id: ID },
  required: ["id"],
} as const satisfies JsonSchema;

export const PRODUCT = {
  type: "object",
  title: "Product",
  properties: {
    sku: SKU,
    name: { type: "string" },
    price_cents: { type: "integer" },
    stock: { type: "integer" },
  },
  required: ["sku", "name", "price_cents", "stock"],
} as const satisfies JsonSchema;
export type Product = Infer<typeof PRODUCT>;

/** The body of a new order; a second order with the same reference is the first one. */
export const NEW_ORDER = {
  type: "object",
  properties: {
    reference: { type: "string", minLength: 1, maxLength: 64 },
    sku: SKU,
    quantity: { type: "integer", minimum: 1, maximum: 100, default: 1 },
  },
  required: ["reference", "sku"],
  additionalProperties: false,
} as const satisfies JsonSchema;
export type NewOrder = Infer<typeof NEW_ORDER>;

export const ORDER = {
  type: "object",
  title: "Order",
  properties: {
    id: ID,
    reference: { type: "string" },
    sku: SKU,
    quantity: { type: "integer" },
    total_cents: { type: "integer" },
    status: { enum: ["placed", "paid", "cancelled"] },
  },
  required: ["id", "reference", "sku", "quantity", "total_cents", "status"],
} as const satisfies JsonSchema;
export type Order = Infer<typeof ORDER>;

export const ORDER_EXAMPLE: Order = {
  id: "3f0c8a1e-5a55-4c43-9a3f-6d4f7c1b2a10",
  reference: "basket-7",
  sku: "lamp",
  quantity: 2,
  total_cents: 9980,
  status: "placed",
};
