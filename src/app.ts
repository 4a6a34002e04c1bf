import { once } from "node:events";
import type { Server } from "node:http";
import { promisify } from "node:util";
import { createReceivers, receiveOperation } from "./api/backend/receiver.ts";
import type { Operation } from "./api/operation.ts";
import { consoleOperations } from "./api/pages/console_page.ts";
import { frontDoorOperations } from "./api/pages/front_door.ts";
import { comparePatterns } from "./api/path_pattern.ts";
import { createPipeline } from "./api/pipeline.ts";
import { createRateLimit } from "./api/rate_limit.ts";
import { createRouter } from "./api/router.ts";
import { createCatchUp } from "./app/catch_up.ts";
import { createConsoleAssets } from "./app/console_assets.ts";
import { ensureFirstUser } from "./app/first_user.ts";
import { createJobs, findLastPurge, type Jobs } from "./app/jobs.ts";
import { createServiceMetrics, observeRequest, watchEventLoop } from "./app/metrics.ts";
import { accountPages, ownOperations } from "./app/operations.ts";
import { createBacklogReader, createReadiness } from "./app/readiness.ts";
import { databaseRisks, findRisks, findStoredRisks } from "./app/risks.ts";
import { createServices } from "./app/services.ts";
import { isWildcardHost, listeningUrl, pathOf } from "./base/base_url.ts";
import type { HttpRequest, HttpResponse } from "./base/http_message.ts";
import { newId } from "./base/id.ts";
import type { BufferedLog } from "./base/log.ts";
import { createPasswordHasher } from "./base/password.ts";
import { createSeal } from "./base/seal.ts";
import { createCautiousClock } from "./base/steady_clock.ts";
import type { Config } from "./config.ts";
import { CONSOLE_PATH } from "./oauth/console_app.ts";
import { createEngine } from "./database/engine.ts";
import { checkUsable } from "./database/judge.ts";
import { checkSeal, loadPageKey } from "./database/settings.ts";
import { createWriteWatch } from "./database/write_watch.ts";
import { createDeliveryWorker } from "./delivery/worker.ts";
import { catalogue } from "./hosting/catalogue.ts";
import { isReserved } from "./hosting/check_endpoint.ts";
import { hostedOperation } from "./hosting/handle.ts";
import { loadEndpoints } from "./hosting/load.ts";
import { closeServer } from "./http/node_close.ts";
import { createHttpServer } from "./http/node_http.ts";
import { createDocumentEgress, createDocumentFetch } from "./outbound/fetch_document.ts";
import { hasAppOrigin } from "./store/apps.ts";
import { declareEvents } from "./store/authority.ts";
import { createFailureAudit } from "./store/failure_audit.ts";
import { createFigureCounter } from "./store/figures.ts";
import { loadKeyRing } from "./store/key_ring.ts";
import { loadRates } from "./store/rates.ts";
import { loadRevocations } from "./store/revocations.ts";
import { createUses } from "./store/uses.ts";
import { hasUsers } from "./store/users.ts";

/** What the process provides. */
interface AppHost {
  readonly log: Omit<BufferedLog, "flush">;
  /** How many log lines have been dropped, because stdout did not take them. */
  readonly droppedLogLines: () => number;
  /** How many passwords may be hashed at once. */
  readonly hashLimit: number;
  /** Prints a line to the operator and not to the log: a generated password. */
  readonly print: (line: string) => void;
}

type Handle = (request: HttpRequest) => Promise<HttpResponse>;

const GRACE_MS = 10_000;
/** How long idle connections are kept at a stop if other processes share the port. */
const IDLE_MS = 500;

/**
 * Makes the service and starts it: config → database → services → operations and jobs. Returns a
 * function that stops it: it finishes the requests in flight and closes the database. Throws
 * UnusableDatabaseError, LoadError, or the system's error if it cannot listen; nothing is left
 * running then.
 */
export async function startApp(config: Config, host: AppHost): Promise<() => Promise<void>> {
  const { log } = host;
  const now = Date.now;
  const hosted = await loadEndpoints(config.endpointsFolder);
  const seal = createSeal(...config.secretKeys ?? []);
  const engine = await createEngine(config);
  const found = await engine.judge(seal);
  checkUsable(engine.address, found);
  // Before other threads start, since Node's report waits for each of them.
  const risks = findRisks(config);
  const elapsedMs = () => performance.now();
  const metrics = createServiceMetrics();
  const loopDelay = watchEventLoop();
  const writes = createWriteWatch(log, elapsedMs);
  const database = await engine.open(({ batches, ms, refusal }) => {
    metrics.observe("gatepost_database_commit_batches", [], batches);
    metrics.observe("gatepost_database_commit_duration_seconds", [], ms / 1000);
    writes.observe(refusal);
  }, log);
  if (found.kind === "usable") {
    const { schemaVersion: from, knownVersion: to } = found;
    if (from > 0 && from < to) log.info("the database has been migrated", { from, to });
  }
  const failures = createFailureAudit(database, now);
  const uses = createUses(database, now);
  const egress = createDocumentEgress(config.callbackAllow);
  const figures = createFigureCounter(database, now);
  const stopping = new AbortController();
  const [entrance, consoleEntrance] = [createEntrance(), createEntrance()];
  let jobs: Jobs | undefined;
  let storing: Promise<unknown> | undefined;
  const createServerFor = (handle: Handle) => createHttpServer({
    handle,
    trustedProxies: config.trustedProxies,
    maxBodyBytes: Math.max(
      config.maxBodyBytes,
      ...hosted.endpoints.map((endpoint) => endpoint.maxBodyBytes ?? 0),
    ),
    log,
    onRefusal: (status) => metrics.count("gatepost_http_refusals_total", [String(status)]),
    stopping: stopping.signal,
  });
  const server = createServerFor(entrance.enter);
  const place = typeof config.console === "object" ? config.console : undefined;
  const consoleServer = place && createServerFor(consoleEntrance.enter);
  const servers = [server, consoleServer].filter((each) => each !== undefined);

  async function stop(graceMs: number): Promise<void> {
    const idleMs = config.sharePort ? IDLE_MS : 0;
    const closed = Promise.all(servers.map((each) => closeServer(each, graceMs, idleMs)));
    stopping.abort();
    await jobs?.stop(graceMs);
    await closed;
    await egress.close();
    for (const [name, { flush }] of Object.entries({ failures, figures, uses })) {
      await flush().catch((error: unknown) => log.warn(`${name} are lost`, { error }));
    }
    await database.close();
    loopDelay.disable();
  }

  try {
    const reason = await checkSeal(database, seal) && database.forgetOverwritten();
    if (reason) log.warn("the log of the database still holds what has been sealed", { reason });
    const hasher = createPasswordHasher(host.hashLimit);
    const { signingAlg: alg, accessTokenTtlMs } = config;
    const events = catalogue(hosted.endpoints);
    // Hashing the password takes longest in a first start, so it is awaited at the end.
    storing = Promise.all([
      ensureFirstUser(database, hasher, config.adminPassword, now()).then((password) => {
        // At once, even if the start fails later: the password is stored and not shown again.
        if (password !== undefined) host.print(`Created user admin, with password ${password}`);
      }),
      database.write(events.length > 0 ? [declareEvents(events)] : []),
    ]);
    storing.catch(() => {}); // in case the start fails before it is awaited
    const { url, local } = await listen(server, config);
    const basePath = pathOf(config.baseUrl ?? url);
    const second = consoleServer &&
      await listen(consoleServer, { ...config, ...place }, "GATEPOST_CONSOLE");
    const cautiousNow = createCautiousClock(now, elapsedMs, await findLastPurge(database));
    // Together, since on an empty database they write and share a commit.
    const [pageKey, revocations, rates, keys] = await Promise.all([
      loadPageKey(database, seal),
      loadRevocations(database, cautiousNow),
      loadRates(database),
      loadKeyRing({ database, seal, alg, accessTokenTtlMs, now, cautiousNow }),
    ]);
    // Without receivers, callbacks reach nothing of this service.
    const receivers = config.console === "off" ? undefined : createReceivers(local + basePath);

    const catchUp = createCatchUp(
      () => Promise.allSettled([revocations.refresh(), keys.refresh(), rates.refresh()]),
      elapsedMs,
      now,
    );
    const name = newId("c", now()); // by which other processes on the database know this one
    const worker = createDeliveryWorker({
      name, config, log, metrics, receivers, connect: database.connect,
    });
    const backlog = createBacklogReader(database, now);
    const { heavy, backUpAs, disk, cluster } = database;
    jobs = createJobs({
      config, database, keys, revocations, rates, failures, uses, figures, log, now, metrics,
      events, name, writes, worker, cautiousNow, beat: catchUp.beat,
      isClockRight: () => database.state() !== "clock_skewed",
    });
    const services = createServices({
      config, log, now, database, seal, revocations, rates, keys, failures, uses, figures, hasher,
      metrics, jobs, events, hosted, pageKey, url, receivers, heavy, backUpAs, disk, cluster,
      consoleListener: second && second.url + basePath,
      consoleAssets: createConsoleAssets(),
      fetchDocument: createDocumentFetch(egress),
      wake: worker.wake,
      watchDeliveries: worker.watch,
      warnings: risks,
      readiness: createReadiness({
        async database() {
          const state = database.state();
          if (state !== "ok") return state;
          if (keys.findSigning() === undefined) return "sealed";
          return await hasUsers(database).then(writes.state, () => "unavailable");
        },
        distributor: worker.state,
        callbacks: () => worker.report().want ?? "ok",
      }, backlog, now),
      formatMetrics: () =>
        metrics.format({
          async connections() {
            const open = servers.map((each) => promisify(each.getConnections.bind(each))());
            return (await Promise.all(open)).reduce((sum, count) => sum + count, 0);
          },
          worker,
          backlog,
          keys,
          cluster,
          droppedLogLines: host.droppedLogLines,
          loopDelay,
          now,
        }),
    });
    // In the order of the router: if a document can show only one of two, it shows the right one.
    const ofModules = hosted.endpoints.toSorted((a, b) => comparePatterns(a.pattern, b.pattern))
      .map((endpoint) => hostedOperation(endpoint, services));
    const hostedRouter = createRouter(ofModules);
    // Whether a parameter of an endpoint could match a first segment of the service's own paths.
    const takesAny = hosted.endpoints.some(({ pattern }) => pattern.segments[0]?.rank !== 0);
    const router = createRouter([
      ...ownOperations(services, ofModules),
      ...receivers ? [receiveOperation(receivers, services)] : [],
    ]);
    const limit = createRateLimit(services, elapsedMs);
    const pipeline = (pages: readonly Operation[], isConsoleHere = true) => createPipeline({
      ...services,
      limit,
      routers: [
        router,
        takesAny
          ? (method, path) => isReserved(path) ? undefined : hostedRouter(method, path)
          : hostedRouter,
        // Last, since a module may serve its own "/".
        createRouter([...frontDoorOperations(services, isConsoleHere), ...pages]),
      ],
      isOriginAllowed: async (origin) =>
        config.corsOrigins.includes(origin) ||
        await hasAppOrigin(database, origin, config.clientMetadata),
      maxBodyBytes: config.maxBodyBytes,
      now: elapsedMs,
      observe: (...response) => observeRequest(metrics, ...response),
    });
    const { issuer, consoleUrl } = services;
    const pages = accountPages(services);
    const withConsole = consoleUrl === undefined ? pages
      : [...pages, ...consoleOperations(CONSOLE_PATH, consoleUrl, services)];
    await storing;
    entrance.open(catchUp.before(second ? pipeline(pages, false) : pipeline(withConsole)));
    if (second) consoleEntrance.open(catchUp.before(pipeline(withConsole)));
    risks.concat(databaseRisks(found), await findStoredRisks(config, database))
      .forEach((risk) => log.warn(risk));
    const console = consoleUrl && `${consoleUrl}${CONSOLE_PATH}`;
    log.always("listening", { url, base_url: issuer, console });
    jobs.start(hosted.cronjobs);
    return () => stop(GRACE_MS);
  } catch (error) {
    await storing?.catch(() => {}); // so that a stored password is printed
    await stop(0);
    throw error;
  }
}

/** Makes a handler whose requests wait until it is opened. */
function createEntrance() {
  const opened = Promise.withResolvers<void>();
  const enter: Handle = (request) => handle(request);
  let handle: Handle = (request) => opened.promise.then(() => enter(request));
  return {
    enter,
    open(next: Handle): void {
      handle = next;
      opened.resolve();
    },
  };
}

/**
 * Listens. Returns the service's URL there, and the one by which this machine reaches it. An error
 * of the system is prefixed with the variable that causes it.
 */
async function listen(
  server: Server,
  { host, port, sharePort }: Pick<Config, "host" | "port" | "sharePort">,
  variable?: string,
) {
  server.listen({ host, port, reusePort: sharePort });
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    const isPort = error.code === "EADDRINUSE" || error.code === "EACCES";
    const behind = variable ?? (isPort ? "GATEPOST_PORT" : "GATEPOST_HOST");
    error.message = `${behind}: ${error.message}`;
    throw error;
  });
  const address = server.address();
  if (typeof address !== "object" || address === null) throw new Error("No address to listen on");
  const local = isWildcardHost(host) ? "127.0.0.1" : address.address;
  return { url: listeningUrl(host, address.port), local: listeningUrl(local, address.port) };
}
