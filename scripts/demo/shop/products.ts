import { endpoint } from "./lib/endpoint.ts";
import { change, rows } from "./lib/database.ts";
import { withEtag } from "./lib/etag.ts";
import { OF_PRODUCT, PRODUCT, type Product } from "./lib/schemas.ts";
import { ShopError } from "./lib/shop_error.ts";

const NO_PRODUCT = "There is no such product.";
const IMAGES = ["image/png", "image/jpeg"];

export const listProducts = endpoint({
  method: "GET",
  path: "/shop/products",
  summary: "List products",
  public: true,
  cors: { origins: "*" },
  input: {
    query: {
      type: "object",
      properties: {
        q: { type: "string", maxLength: 100, default: "" },
        max_price_cents: { type: "integer", minimum: 0 },
        limit: { type: "integer", minimum: 1, maximum: 100, default: 20 },
      },
      additionalProperties: false,
    },
  },
  output: {
    type: "object",
    properties: { items: { type: "array", items: PRODUCT } },
    required: ["items"],
  },
  handle({ query: { q, limit, max_price_cents = Number.MAX_SAFE_INTEGER }, request }) {
    const items = rows<Product>(
      `SELECT sku, name, price_cents, stock FROM products
        WHERE instr(lower(name), lower(?)) > 0 AND price_cents <= ? ORDER BY sku LIMIT ?`,
      q,
      max_price_cents,
      limit,
    );
    return withEtag(request, { items });
  },
});

export const getProduct = endpoint({
  method: "GET",
  path: "/shop/products/:sku",
  summary: "Get a product",
  public: true,
  cors: { origins: "*" },
  input: { params: OF_PRODUCT },
  output: PRODUCT,
  handle({ params, request }) {
    const [product] = rows<Product>(
      "SELECT sku, name, price_cents, stock FROM products WHERE sku = ?",
      params.sku,
    );
    if (product === undefined) throw { status: 404, detail: NO_PRODUCT };
    return withEtag(request, product);
  },
});

/** Accepts a picture as its raw bytes. */
export const putImage = endpoint({
  method: "PUT",
  path: "/shop/products/:sku/image",
  summary: "Put the picture of a product",
  scope: "shop:staff",
  maxBody: "1MiB",
  input: { params: OF_PRODUCT },
  async handle({ params, request }) {
    const type = request.headers.get("content-type") ?? "";
    if (!IMAGES.includes(type)) {
      throw { status: 415, detail: `A picture is one of ${IMAGES.join(", ")}.` };
    }
    const image = await request.bytes();
    const sql = "UPDATE products SET image = ?, image_type = ? WHERE sku = ?";
    if (change(sql, image, type, params.sku) === 0) throw new ShopError(404, NO_PRODUCT);
  },
});

export const getImage = endpoint({
  method: "GET",
  path: "/shop/products/:sku/image",
  summary: "Get the picture of a product",
  public: true,
  input: { params: OF_PRODUCT },
  handle({ params }) {
    const [found] = rows<{ image: Uint8Array | null; image_type: string }>(
      "SELECT image, image_type FROM products WHERE sku = ?",
      params.sku,
    );
    if (!found?.image) throw { status: 404, detail: "There is no such picture." };
    const headers = { "content-type": found.image_type, "cache-control": "max-age=60" };
    return { status: 200, headers, body: found.image };
  },
});
