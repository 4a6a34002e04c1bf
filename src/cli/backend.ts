import { readQuery } from "../api/input.ts";
import { createRouter } from "../api/router.ts";
import { createServiceMetrics } from "../app/metrics.ts";
import { backendOperations } from "../app/operations.ts";
import { listeningUrl } from "../base/base_url.ts";
import { newId } from "../base/id.ts";
import { createPasswordHasher } from "../base/password.ts";
import type { Members } from "../base/plain_object.ts";
import { Problem } from "../base/problem.ts";
import { createSeal } from "../base/seal.ts";
import { parseShape } from "../base/shape.ts";
import type { Config } from "../config.ts";
import { BACKEND_SCOPE, type Caller } from "../oauth/principal.ts";
import { createDocumentEgress, createDocumentFetch } from "../outbound/fetch_document.ts";
import { toJobState } from "../job/shared_cron.ts";
import { CLI_ACTOR, insertAudit } from "../store/audit.ts";
import { hastenCronjob, listStoredCronjobs } from "../store/cronjobs.ts";
import { createEngine } from "../database/engine.ts";
import { paceWrites } from "../database/pace_writes.ts";
import type { Sql } from "../database/sql.ts";
import { loadKeyRing } from "../store/key_ring.ts";
import { loadRevocations } from "../store/revocations.ts";
import { checkSeal } from "../database/settings.ts";
import { Failure } from "./failure.ts";

/** The backend's operations in this process, without a socket. */
export type Backend = Awaited<ReturnType<typeof openBackend>>;

const CALLER: Caller = {
  sub: CLI_ACTOR,
  kind: "user",
  clientId: CLI_ACTOR,
  scopes: [BACKEND_SCOPE],
  grantId: "",
  jti: "",
  expiresAtMs: Infinity,
};

/**
 * Opens the database that the configuration names, and the backend's operations on it. Where there
 * is none, it is made and `onCreate` called with its address; without `onCreate` that is a Failure.
 * Throws UnusableDatabaseError.
 */
export async function openBackend(config: Config, onCreate?: (address: string) => void) {
  const engine = await createEngine(config);
  const isNew = !await engine.exists();
  if (isNew && !onCreate) {
    throw new Failure(
      `There is no database at ${engine.address} (GATEPOST_DATABASE); ` +
        "the server's first start makes it, and so does setup.",
    );
  }
  const now = Date.now;
  const egress = createDocumentEgress(config.callbackAllow);
  const seal = createSeal(...config.secretKeys ?? []);
  const database = paceWrites(await engine.open(undefined, undefined, seal));
  try {
    if (isNew) onCreate?.(engine.address);
    if (await checkSeal(database, seal)) database.forgetOverwritten();
    const { signingAlg: alg, accessTokenTtlMs } = config;
    const keys = await loadKeyRing({ database, seal, alg, accessTokenTtlMs, now });
    const find = createRouter(backendOperations({
      config,
      database,
      keys,
      revocations: await loadRevocations(database, now),
      hasher: createPasswordHasher(1),
      issuer: issuerOf(config),
      fetchDocument: createDocumentFetch(egress),
      refuseEndpoint: () => "Is not changed from the command line.",
      // As the database knows them; to run one here is to make it due for a server.
      jobs: {
        listCronjobs: async () =>
          (await listStoredCronjobs(database)).map((job) => toJobState(job, undefined, now())),
        runCronjob: async (name) =>
          await hastenCronjob(database, name, now()) ? "started" : "unknown",
      },
      metrics: createServiceMetrics(), // which nobody reads here
      events: [], // no modules are loaded
      heavy: database,
      disk: database.disk,
      cluster: undefined, // its nodes take a server some seconds to judge: gatepost check asks them
      readiness: async () => ({ isReady: true, parts: {} }), // of a server
      warnings: [],
      wake: () => {}, // a running server looks for work by itself
      now,
    }));
    return {
      database,
      /** The keys that the servers sign with. */
      keys,
      async close() {
        await egress.close();
        await database.close();
      },
      /**
       * Calls one operation as the command line's own caller: validation, audit and records are
       * those of HTTP. `body` is a JSON value, and so is what is returned, or undefined. Throws
       * Problem.
       */
      async call(method: string, target: string, body?: Members): Promise<Members | undefined> {
        const [path = "", query = ""] = target.split("?");
        const match = find(method, path);
        if (match?.operation === undefined) {
          throw new Problem(404, "not_found", "There is nothing of this name.");
        }
        const { operation, params } = match;
        const response = await operation.handle({
          request: {
            id: newId("r", now()),
            method,
            path,
            query,
            headers: {},
            address: "", // none: the audit entry says so
            signal: AbortSignal.any([]),
            isGone: false,
            abort() {},
            readBody: async () => Buffer.alloc(0), // `body` has been read
          },
          params,
          caller: CALLER,
          query: readQuery(query, operation.query ?? {}),
          body: operation.body && parseShape(operation.body, body, "body"),
          authenticateAgain: async () => {},
        });
        return typeof response.body === "string" ? JSON.parse(response.body) : undefined;
      },
    };
  } catch (error) {
    await database.close();
    throw error;
  }
}

/** The issuer as the server names itself. */
export function issuerOf({ baseUrl, host, port }: Config): string {
  return baseUrl ?? listeningUrl(host, port);
}

/** The audit entry of what no operation of the backend does; goes into the same batch. */
export function auditOwn(action: string, target: string, nowMs: number): Sql {
  return insertAudit({ actor: CLI_ACTOR, action, target, address: null }, nowMs);
}
