import { change, rows } from "./lib/database.ts";
import { OF_PRODUCT } from "./lib/schemas.ts";

/** @import { Endpoint, JsonSchema } from "gatepost" */

const REVIEW = /** @satisfies {JsonSchema} */ ({
  type: "object",
  title: "Review",
  properties: {
    stars: { type: "integer", minimum: 1, maximum: 5 },
    words: { type: "string", maxLength: 1000 },
  },
  required: ["stars", "words"],
});

const path = "/shop/products/:sku/reviews";

/**
 * Several endpoints at once, in JavaScript.
 *
 * @type {Endpoint<{ stars: number, words: string }>[]}
 */
export const reviews = [
  {
    method: "GET",
    path,
    summary: "List reviews of a product",
    public: true,
    input: { params: OF_PRODUCT },
    output: { type: "array", items: REVIEW },
    handle: ({ params }) =>
      rows("SELECT stars, words FROM reviews WHERE sku = ?", params["sku"] ?? ""),
  },
  {
    method: "POST",
    path,
    summary: "Review a product",
    scope: [],
    input: { params: OF_PRODUCT, body: REVIEW },
    output: REVIEW,
    handle({ params, body: { stars, words }, caller }) {
      const sku = params["sku"] ?? "";
      change("INSERT INTO reviews VALUES (?, ?, ?, ?)", sku, stars, words, caller.sub);
      return { status: 201, body: { stars, words } };
    },
  },
];
