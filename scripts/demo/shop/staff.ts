import { endpoint } from "./lib/endpoint.ts";
import { saveCustomer } from "./lib/customer.ts";

export const putCustomer = endpoint({
  method: "PUT",
  path: "/shop/customers/:id",
  summary: "Change a customer",
  scope: ["shop:staff", "shop:order"],
  input: {
    params: { type: "object", properties: { id: { type: "string" } }, required: ["id"] },
    body: {
      type: "object",
      properties: {
        discount_percent: { type: "integer", minimum: 0, maximum: 90, default: 0 },
        blocked: { type: "boolean", default: false },
      },
      additionalProperties: false,
    },
  },
  handle({ params: { id }, body: { discount_percent, blocked } }) {
    saveCustomer({ id, discount_percent, blocked: Number(blocked) });
  },
});
