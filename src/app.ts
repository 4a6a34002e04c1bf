import { once } from "node:events";
import type { Server } from "node:http";
import { promisify } from "node:util";
import { listeningUrl, pathOf } from "./base/base_url.ts";
import type { HttpResponse, HttpRequest } from "./base/http_message.ts";
import { newId } from "./base/id.ts";
import type { Logger } from "./base/log.ts";
import { createPasswordHasher, hashLimit } from "./base/password.ts";
import { createSeal } from "./base/seal.ts";
import { createCautiousClock } from "./base/steady_clock.ts";
import type { Config } from "./config.ts";
import { isPrincipalId } from "./event/event.ts";
import { ensureFirstUser } from "./app/first_user.ts";
import { catalogue, scopeWords } from "./hosting/catalogue.ts";
import { type DispatchedEvent } from "./hosting/dispatch.ts";
import { loadEndpoints } from "./hosting/load.ts";
import { createBrowserSessions } from "./api/authorization/browser_session.ts";
import { createBearer } from "./api/bearer.ts";
import { createHttpServer } from "./http/node_http.ts";
import { frontDoorRoutes } from "./api/pages/front_door.ts";
import { createPipeline } from "./api/pipeline.ts";
import { createRouter } from "./api/router.ts";
import { hostedRouter } from "./app/hosted_router.ts";
import { type Jobs, startJobs } from "./app/jobs.ts";
import { addReadings, createServiceMetrics } from "./app/metrics.ts";
import { createBacklogReader, createReadiness } from "./app/readiness.ts";
import { builtInRoutes } from "./app/routes.ts";
import { hasAppOrigin } from "./store/apps.ts";
import { declareEvents } from "./store/authority.ts";
import { hasDelivery } from "./store/deliveries.ts";
import { insertEvent } from "./store/events.ts";
import { createFailureAudit } from "./store/failure_audit.ts";
import { judgeDatabase, refuseUnusable } from "./database/judge.ts";
import { loadKeyRing } from "./store/key_ring.ts";
import { createAccounts } from "./store/accounts.ts";
import { identify } from "./database/own_files.ts";
import { loadRevocations } from "./store/revocations.ts";
import { checkSeal, loadPageKey } from "./database/settings.ts";
import { openSqliteDatabase } from "./database/sqlite.ts";
import { emptyLog } from "./database/sqlite_file.ts";
import { hasUsers } from "./store/users.ts";
import { createWriteWatch } from "./database/write_watch.ts";

/** What the process gives to the app. */
export interface AppHost {
  readonly log: Logger;
  /** How many lines of the log have been dropped because nobody took them. */
  readonly droppedLogLines: () => number;
  readonly now: () => number;
  readonly cores: number;
  /** Threads of libuv's pool. */
  readonly poolThreads: number;
  /** Says something to the operator once, past the log: a generated password. */
  readonly tell: (line: string) => void;
}

/** A running service. */
export interface App {
  /** Where it listens. */
  readonly url: string;
  /** Stops accepting, finishes what is in flight, closes the database. */
  stop(): Promise<void>;
}

const GRACE_MS = 10_000;

/**
 * Puts the service together and starts it: config → database → services → routes and jobs. Throws
 * UnusableDatabaseError, LoadError, or the system's error when the address cannot be listened on;
 * then nothing is left running.
 */
export async function startApp(config: Config, host: AppHost): Promise<App> {
  const { log, now } = host;
  const hosted = config.endpointsFolder === undefined
    ? { endpoints: [], cronjobs: [], scopes: [] }
    : await loadEndpoints(config.endpointsFolder);
  const seal = createSeal(...config.secretKeys ?? []);
  refuseUnusable(config.databasePath, judgeDatabase(config.databasePath, seal));
  const cautiousNow = createCautiousClock(now, () => performance.now());
  const metrics = createServiceMetrics();
  const writes = createWriteWatch(log, () => performance.now());
  const database = openSqliteDatabase(config.databasePath, ({ batches, ms, refusal }) => {
    metrics.observeCommit(batches, ms);
    writes.observe(refusal);
  });
  const identity = identify(config.databasePath);
  let listening: Server | undefined;
  let started: Jobs | undefined;
  try {
    if (await checkSeal(database, seal) && !emptyLog(config.databasePath)) {
      log.warn("the log of the database still holds what has been sealed: others are reading it");
    }
    const accounts = createAccounts(database);
    const hasher = createPasswordHasher(hashLimit(host.cores, host.poolThreads));
    const events = catalogue(hosted.endpoints);
    // On an empty database these write, and share a commit: the first password is hashed meanwhile.
    const opening = Promise.all([
      ensureFirstUser(database, hasher, config.adminPassword, now()).then((password) => {
        // At once, whatever becomes of the rest: it is stored, and never told again.
        if (password !== undefined) host.tell(`User admin has been made, with password ${password}`);
      }),
      loadPageKey(database, seal),
      loadRevocations(database, cautiousNow),
      loadKeyRing({
        database,
        seal,
        alg: config.signingAlg,
        accessTokenTtlMs: config.accessTokenTtlMs,
        now,
      }),
      database.write(events.length > 0 ? [declareEvents(events)] : []),
    ]);

    const stopping = new AbortController();
    let handle: (request: HttpRequest) => Promise<HttpResponse> = () => Promise.reject();
    const server = createHttpServer({
      handle: (request) => handle(request),
      trustedProxies: config.trustedProxies,
      maxBodyBytes: Math.max(
        config.maxBodyBytes,
        ...hosted.endpoints.map((endpoint) => endpoint.maxBodyBytes ?? 0),
      ),
      log,
      onRefusal: metrics.countRefusal,
      stopping: stopping.signal,
    });
    const [, pageKey, revocations, keys] = await opening;
    const url = await listen(server, config);
    listening = server;
    const issuer = config.baseUrl ?? url;
    const basePath = pathOf(issuer);
    const { host: publicHost } = new URL(issuer);
    const site = { name: config.name ?? publicHost, host: publicHost, basePath };
    const sessions = createBrowserSessions({ database, issuer, pageKey, now });

    const bearer = createBearer({ issuer, keys, revocations, now });
    const failures = createFailureAudit({ database, now });
    const jobs = started = startJobs({
      config,
      database,
      writes,
      keys,
      revocations,
      failures,
      log,
      now,
      cautiousNow,
      observeAttempt: metrics.observeAttempt,
    });
    const backlog = createBacklogReader(database, now);
    const { distributorState, inFlight, want } = jobs;
    addReadings(metrics, {
      connections: promisify(server.getConnections.bind(server)),
      inFlight,
      distributorState,
      backlog,
      signsSinceMs: () => keys.signing().signsFromMs,
      droppedLogLines: host.droppedLogLines,
      now,
    });
    const commit = async (dispatched: readonly DispatchedEvent[]) => {
      const createdAtMs = now();
      await database.write(dispatched.map(({ id, name, json, subject }) =>
        insertEvent({ id, name, json, subject, createdAtMs })
      ));
      metrics.countEvents(dispatched.length);
      jobs.wake();
    };
    const dispatching = {
      maxPayloadBytes: config.maxPayloadBytes,
      newEventId: () => newId("e", now()),
      isPrincipal: isPrincipalId,
      commit,
      log,
    };
    jobs.startCronjobs(hosted.cronjobs, dispatching);

    handle = createPipeline({
      routers: [
        createRouter(builtInRoutes({
          config,
          database,
          seal,
          keys,
          accounts,
          revocations,
          hasher,
          bearer,
          failures,
          jobs,
          pageKey,
          sessions,
          site,
          issuer,
          basePath,
          listeningUrl: url,
          endpoints: hosted.endpoints,
          scopeWords: scopeWords(hosted.scopes),
          events,
          metrics,
          readiness: createReadiness({
            parts: {
              database: () =>
                identify(config.databasePath) === identity
                  ? hasUsers(database).then(writes.state, () => "unavailable")
                  : "replaced",
              distributor: distributorState,
              callbacks: () => want() ?? "ok",
            },
            backlog,
            now,
          }),
          now,
        })),
        hostedRouter(hosted.endpoints, {
          ...dispatching,
          maxBodyBytes: config.maxBodyBytes,
          baseUrl: issuer,
          isOwnDelivery: (id) => hasDelivery(database, id),
        }),
        // Last, since a module may have a front door of its own.
        createRouter(frontDoorRoutes({ site, issuer, sessions, database })),
      ],
      bearer,
      isOriginAllowed: async (origin) =>
        config.corsOrigins.includes(origin) || await hasAppOrigin(database, origin),
      site,
      log,
      now: () => performance.now(),
      observe: metrics.observeRequest,
    });
    log.info("listening", { url, base_url: issuer });
    jobs.startDistributor();

    return {
      url,
      async stop() {
        const closed = closeServer(server, GRACE_MS);
        stopping.abort();
        await jobs.stop(GRACE_MS);
        await closed;
        await failures.flush().catch((error: unknown) => log.warn("failures are lost", { error }));
        await database.close();
        metrics.stop();
      },
    };
  } catch (error) {
    if (listening) await closeServer(listening, 0);
    await started?.stop(0);
    await database.close();
    metrics.stop();
    throw error;
  }
}

async function listen(server: Server, { host, port, sharePort }: Config): Promise<string> {
  server.listen({ host, port, reusePort: sharePort });
  await once(server, "listening");
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("No address to listen on");
  return listeningUrl(host, address.port);
}

/** Awaits the requests in flight; connections that are still open after the grace are cut. */
async function closeServer(server: Server, graceMs: number): Promise<void> {
  const grace = setTimeout(() => server.closeAllConnections(), graceMs);
  await new Promise<void>((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
  });
  clearTimeout(grace);
}
