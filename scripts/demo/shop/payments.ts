import { createHmac, timingSafeEqual } from "node:crypto";
import { endpoint } from "./lib/endpoint.ts";
import { markPaid } from "./lib/orders.ts";

/** The webhook of another service: no token, but a signature of the bytes as they came. */
export const takePayment = endpoint({
  method: "POST",
  path: "/shop/webhooks/payment",
  summary: "Learn of a payment",
  public: true,
  maxBody: "16KiB",
  input: {
    body: {
      type: "object",
      properties: { order: { type: "string", format: "uuid" } },
      required: ["order"],
    },
  },
  async before({ request }) {
    const bytes = await request.bytes();
    const secret = process.env["SHOP_PAYMENT_SECRET"] ?? "";
    const given = Buffer.from(request.headers.get("x-payment-signature") ?? "", "hex");
    const expected = createHmac("sha256", secret).update(bytes).digest();
    const isGenuine = given.length === expected.length && timingSafeEqual(given, expected);
    if (secret === "" || !isGenuine) throw { status: 401, detail: "The signature is wrong." };
  },
  handle({ body, log }) {
    // A payment may be reported twice.
    if (!markPaid(body.order)) log.info("a payment that changes nothing", { order: body.order });
  },
});
