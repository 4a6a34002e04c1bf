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

/** The operations of the backend, called in this process without a socket. */
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
 * Opens the configured database, and the backend's operations on it. If there is no database, it is
 * made and `onCreate` is called with its address; without `onCreate` this throws Failure. Throws
 * UnusableDatabaseError.
 */
export async function openBackend(config: Config, onCreate?: (address: string) => void) {
  const engine = await createEngine(config);
  const isNew = !await engine.exists();
  if (isNew && !onCreate) {
    throw new Failure(
      `There is no database at ${engine.address} (GATEPOST_DATABASE); ` +
        "the server's first start or gatepost setup creates it.",
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
      refuseEndpoint: () => "Cannot be changed from the command line.",
      // As stored. Running a job here makes it due, and a server runs it.
      jobs: {
        listCronjobs: async () =>
          (await listStoredCronjobs(database)).map((job) => toJobState(job, undefined, now())),
        runCronjob: async (name) =>
          await hastenCronjob(database, name, now()) ? "started" : "unknown",
      },
      metrics: createServiceMetrics(), // nobody reads them here
      events: [], // no modules are loaded
      heavy: database,
      disk: database.disk,
      cluster: undefined, // to judge the nodes takes some seconds; `gatepost check` does it
      readiness: async () => ({ isReady: true, parts: {} }), // only a server has a real one
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
       * Calls an operation as the caller `cli`, with the same validation, audit and records as over
       * HTTP. `body` is a JSON value. Returns the JSON of the response, or undefined if it has
       * none. Throws Problem.
       */
      async call(method: string, target: string, body?: Members): Promise<Members | undefined> {
        const [path = "", query = ""] = target.split("?");
        const match = find(method, path);
        if (match?.operation === undefined) {
          throw new Problem(404, "not_found", "There is no item of this name.");
        }
        const { operation, params } = match;
        const response = await operation.handle({
          request: {
            id: newId("r", now()),
            method,
            path,
            query,
            headers: {},
            address: "", // no client address, also in the audit
            signal: AbortSignal.any([]),
            isGone: false,
            abort() {},
            readBody: async () => Buffer.alloc(0), // `body` is passed to the operation itself
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

/** Returns the issuer that the server uses. */
export function issuerOf({ baseUrl, host, port }: Config): string {
  return baseUrl ?? listeningUrl(host, port);
}

/** Returns the audit entry of an act that is no operation; write it in the same batch. */
export function auditCommand(action: string, target: string, nowMs: number): Sql {
  return insertAudit({ actor: CLI_ACTOR, action, target, address: null }, nowMs);
}
