import {
  type ForeignIssuer,
  newForeignKey,
  registerIssuer,
  startForeignIssuer,
} from "../helpers/foreign_issuer.ts";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import type { ClientResponse } from "../helpers/http_client.ts";
import { bearer } from "../helpers/requests.ts";
import { expectStatus, readObject } from "../helpers/responses.ts";

type Body = Readonly<Record<string, unknown>>;

/** A server that accepts the tokens of another issuer. */
export interface ForeignStage {
  readonly first: Gatepost;
  readonly issuer: ForeignIssuer;
  /** The issuer's record. */
  readonly record: Body;
  /** Calls as the administrator. */
  call(method: string, path: string, body?: Body): Promise<ClientResponse>;
  /** What the server, or another process, says about a token that it accepts. */
  whoami(token: string, at?: Gatepost): Promise<Body>;
  /** Starts and registers another issuer. Its first token makes the service fetch its keys. */
  another(more?: Body, key?: ForeignIssuer["key"]): Promise<ForeignIssuer & { id: string }>;
  stop(): Promise<void>;
}

/** The settings of each process: all of them issue tokens by one name. */
export const ENV = {
  GATEPOST_BASE_URL: "http://gatepost.test",
  GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
  GATEPOST_RESEND_DELAYS: "20ms",
  GATEPOST_DISTRIBUTE_INTERVAL: "100ms",
};

/** Starts such a server and the issuer. */
export async function startForeignStage(): Promise<ForeignStage> {
  const first = await startGatepost({ env: ENV });
  const issuer = await startForeignIssuer(first.issuer);
  const headers = bearer(first.adminToken);
  return {
    first,
    issuer,
    record: await registerIssuer(first, issuer),
    call: (method, path, body) =>
      body === undefined
        ? first.api.send(method, path, { headers })
        : first.api.sendJson(method, path, body, headers),
    whoami: async (token, at = first) =>
      readObject(await expectStatus(200, at.api.get("/authorization/whoami", bearer(token)))),
    async another(more = {}, key = newForeignKey("f1")) {
      const own = await startForeignIssuer(first.issuer, { key });
      const { id } = await registerIssuer(first, own, more);
      return { ...own, id: String(id) };
    },
    async stop() {
      await first.stop();
      await issuer.close();
    },
  };
}
