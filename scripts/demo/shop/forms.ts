import { randomUUID } from "node:crypto";
import { withCustomer } from "./lib/customer.ts";
import { endpoint } from "./lib/endpoint.ts";
import { findOrder } from "./lib/orders.ts";

/** Accepts a form of a web page as well as JSON, both by the same schema. */
export const subscribe = endpoint({
  method: "POST",
  path: "/shop/newsletter",
  summary: "Get the newsletter",
  public: true,
  accepts: ["json", "form"],
  limit: { rate: "3/1m", by: "address" },
  input: {
    body: {
      type: "object",
      properties: {
        email: { type: "string", format: "email", maxLength: 254 },
        weekly: { type: "boolean", default: false },
      },
      required: ["email"],
      additionalProperties: false,
    },
  },
  emits: { "shop.newsletter.wanted": { description: "An address for it", scope: "shop:staff" } },
  handle({ body, dispatch }) {
    dispatch("shop.newsletter.wanted", body);
    return { status: 202, body: { weekly: body.weekly } };
  },
});

/** Accepts a form with a file (multipart/form-data), which the web Request parses. */
export const takeBack = endpoint({
  method: "POST",
  path: "/shop/returns",
  summary: "Send an order back",
  scope: "shop:order",
  maxBody: "2MiB",
  emits: { "shop.return.wanted": "A customer wants to send an order back" },
  output: {
    type: "object",
    properties: { id: { type: "string", format: "uuid" }, photo_bytes: { type: "integer" } },
    required: ["id", "photo_bytes"],
  },
  before: withCustomer,
  async handle({ request, customer, dispatch }) {
    const form = await request.formData();
    const [order, photo] = [form.get("order"), form.get("photo")];
    const errors = [
      ...typeof order === "string" ? [] : [{ pointer: "/order", detail: "It is missing." }],
      ...photo instanceof File ? [] : [{ pointer: "/photo", detail: "A file is missing." }],
    ];
    if (typeof order !== "string" || !(photo instanceof File)) {
      throw { status: 400, detail: "The form is not complete.", errors };
    }
    const back = { id: randomUUID(), order: findOrder(customer, order).id };
    dispatch("shop.return.wanted", back, { subject: customer.id });
    return { status: 201, body: { id: back.id, photo_bytes: photo.size } };
  },
});
