/** fastify with @fastify/jwt and one protected GET: `FOLDER PUBLIC_PEM BODY [cached]`. */
import { importPeer } from "./peers.ts";

interface ItemRequest {
  readonly params: { readonly id: string };
}
interface Instance {
  register(plugin: unknown, options: object): void;
  get(path: string, options: object, handle: (request: ItemRequest) => object): void;
  listen(options: { port: number; host: string }): Promise<string>;
}
type Fastify = { default: (options: object) => Instance };

const [folder = "", publicPem = "", body = "{}", cached = ""] = process.argv.slice(2);
const { default: fastify } = await importPeer<Fastify>(folder, "fastify");
const { default: jwt } = await importPeer<{ default: unknown }>(folder, "@fastify/jwt");

const app = fastify({ logger: false, keepAliveTimeout: 65_000 });
app.register(jwt, {
  secret: { public: publicPem },
  verify: { algorithms: ["ES256"], cache: cached !== "" },
});
const item: object = JSON.parse(body);
app.get("/items/:id", {
  onRequest: (request: { jwtVerify(): Promise<unknown> }) => request.jwtVerify(),
}, ({ params }) => ({ ...item, id: params.id }));
console.log(JSON.stringify({ url: await app.listen({ port: 0, host: "127.0.0.1" }) }));
