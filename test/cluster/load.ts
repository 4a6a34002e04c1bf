import { setTimeout as sleep } from "node:timers/promises";
import type { TestApp } from "../helpers/gatepost.ts";
import type { Random } from "../helpers/random.ts";
import { basicAuth, bearer, newName } from "../helpers/requests.ts";
import { type Call, createNodeClient, isUnknown, type Reply } from "./client.ts";
import { createJournal, type Journal, noteWrite } from "./journal.ts";
import type { ClusterStage } from "./stage.ts";

/** Clients that send requests. */
export interface Load {
  readonly journal: Journal;
  /** Stops the clients; each finishes the request that it has begun, with its retries. */
  stop(): Promise<void>;
}

/** What every client uses. */
interface Setup {
  readonly stage: ClusterStage;
  readonly journal: Journal;
  readonly random: Random;
  readonly signal: AbortSignal;
  /** The app's access token, for the hosted endpoints. */
  readonly token: string;
  /** Returns a number that no event has had. */
  next(): number;
}

const PAUSE_MS = 12;
const RETRY_EVERY_MS = 100;
/** Longer than the request of a dead node keeps its idempotency key. */
const RETRY_MS = 30_000;
const PROBE_EVERY_MS = 20;
const REVOKE_EVERY_MS = 500;
const TOKEN_PATH = "/authorization/token";
const CREDENTIALS = { grant_type: "client_credentials" };

/** Starts eight writers, of which half begin at each node, a prober of GETs, and a revoker. */
export async function startLoad(stage: ClusterStage, random: Random): Promise<Load> {
  const journal = createJournal();
  const stopping = new AbortController();
  let last = 0;
  const token = await obtainToken(stage, stage.app);
  const logIn = () => stage.gateposts[0].passwordTokens(stage.app, stage.user);
  const chains = await Promise.all([logIn(), logIn()]);
  const next = () => ++last;
  const setup: Setup = { stage, journal, random, signal: stopping.signal, token, next };
  const working = Promise.all([
    dispatch(setup, 0, false),
    dispatch(setup, 1, false),
    dispatch(setup, 0, true),
    dispatch(setup, 1, true),
    obtainTokens(setup, 0),
    obtainTokens(setup, 1),
    ...chains.map(({ refresh_token: start }, first) => refresh(setup, first, start)),
    probe(setup, 0),
    probe(setup, 1),
    revoke(setup),
  ]);
  return {
    journal,
    async stop() {
      stopping.abort();
      await working;
    },
  };
}

/** Dispatches; with a key, each request is repeated until it is acknowledged. */
async function dispatch(setup: Setup, first: number, isKeyed: boolean): Promise<void> {
  const { stage, journal, random, signal, token } = setup;
  const send = createNodeClient(stage.gateposts, first);
  while (!signal.aborted) {
    const numbers = Array.from({ length: 1 + random.below(3) }, setup.next);
    const call: Call = {
      method: "POST",
      path: "/orders",
      headers: {
        ...bearer(token),
        "content-type": "application/json",
        ...(isKeyed && { "idempotency-key": newName("key") }),
      },
      body: JSON.stringify({ numbers }),
    };
    const isFinal = (reply: Reply | undefined) => isKeyed ? isDone(reply) : true;
    const reply = await repeat(journal, () => send(call), isFinal);
    const outcome = isDone(reply) ? "acknowledged" : isUnknown(reply) ? "unanswered" : "refused";
    // What was repeated may have been stored by an earlier attempt.
    const batch = isKeyed && outcome === "refused" ? "unanswered" : outcome;
    journal.batches.push({ event: "order.placed", numbers, outcome: batch });
    await sleep(random.below(PAUSE_MS));
  }
}

async function obtainTokens(setup: Setup, first: number): Promise<void> {
  const { stage, journal, random, signal } = setup;
  const send = createNodeClient(stage.gateposts, first);
  while (!signal.aborted) {
    await repeat(journal, () => send(tokenCall(stage.app, CREDENTIALS)), () => true);
    await sleep(random.below(PAUSE_MS));
  }
}

/** Refreshes again and again, and repeats requests without a response, as clients should. */
async function refresh(setup: Setup, first: number, start: string): Promise<void> {
  const { stage, journal, random, signal } = setup;
  const send = createNodeClient(stage.gateposts, first);
  let current = start;
  while (!signal.aborted) {
    const call = tokenCall(stage.app, { grant_type: "refresh_token", refresh_token: current });
    const isFinal = (reply: Reply | undefined) => isDone(reply) || reply?.status === 400;
    const reply = await repeat(journal, () => send(call), isFinal);
    if (reply === undefined || !isDone(reply)) {
      journal.chains.broken++;
      return;
    }
    journal.chains.exchanged++;
    ({ refresh_token: current } = JSON.parse(reply.text));
    await sleep(random.below(PAUSE_MS));
  }
}

/** Sends a protected GET every 20 ms, whether or not the last one has its response. */
async function probe({ stage, journal, signal, token }: Setup, first: number): Promise<void> {
  const send = createNodeClient(stage.gateposts, first);
  const call: Call = { method: "GET", path: "/orders", headers: bearer(token) };
  const open = async () => {
    const sentAtMs = performance.now();
    const reply = await send(call);
    if (reply === undefined) journal.gets.unanswered++;
    else if (reply.status === 200) journal.gets.tookMs.push(performance.now() - sentAtMs);
    else journal.gets.failed++;
  };
  const probes: Promise<void>[] = [];
  while (!signal.aborted) {
    probes.push(open());
    await sleep(PROBE_EVERY_MS);
  }
  await Promise.all(probes);
}

/** Ends tokens at one node, by revocation and by disabling the app, and checks at the other. */
async function revoke(setup: Setup): Promise<void> {
  const { stage: { gateposts, victim }, journal, signal } = setup;
  for (let round = 0; !signal.aborted; round++) {
    await sleep(REVOKE_EVERY_MS);
    const [here, there] = round % 4 < 2 ? gateposts : [gateposts[1], gateposts[0]];
    const asked = [createNodeClient([here], 0), createNodeClient([there], 0)] as const;
    const token = tokenIn(await asked[0](tokenCall(victim, CREDENTIALS)));
    const call: Call = { method: "GET", path: "/orders", headers: bearer(token) };
    if ((await asked[1](call))?.status !== 200) continue;
    const ended = round % 2 === 0
      ? await asked[0](tokenCall(victim, { token }, "/authorization/revoke"))
      : await asked[0](changeCall(here.adminToken, victim, "disabled"));
    const endedAtMs = performance.now();
    if (isDone(ended)) {
      let reply = await asked[1](call);
      while (reply?.status === 200) reply = await asked[1](call);
      const tookMs = performance.now() - endedAtMs;
      if (reply !== undefined) journal.revoked.push({ endedAtMs, tookMs });
    }
    if (round % 2 === 0) continue;
    const enable = () => asked[0](changeCall(here.adminToken, victim, "active"));
    await repeat(journal, enable, (reply) => reply === undefined || isDone(reply));
  }
}

/** Sends until the reply is final, for 30 seconds at most, and records each reply. */
async function repeat(
  journal: Journal,
  send: () => Promise<Reply | undefined>,
  isFinal: (reply: Reply | undefined) => boolean,
): Promise<Reply | undefined> {
  for (const endMs = performance.now() + RETRY_MS;;) {
    const sentAtMs = performance.now();
    const reply = await send();
    noteWrite(journal, sentAtMs, reply);
    if (isFinal(reply) || performance.now() > endMs) return reply;
    await sleep(RETRY_EVERY_MS);
  }
}

function isDone(reply: Reply | undefined): boolean {
  return reply !== undefined && reply.status < 300;
}

function tokenCall(app: TestApp, fields: Record<string, string>, path = TOKEN_PATH): Call {
  return { method: "POST", path, headers: basicAuth(app), body: new URLSearchParams(fields) };
}

function changeCall(token: string, app: TestApp, status: string): Call {
  return {
    method: "PATCH",
    path: `/backend/app/${app.id}`,
    headers: { ...bearer(token), "content-type": "application/json" },
    body: JSON.stringify({ status }),
  };
}

async function obtainToken(stage: ClusterStage, app: TestApp): Promise<string> {
  return tokenIn(await createNodeClient(stage.gateposts, 0)(tokenCall(app, CREDENTIALS)));
}

/** The access token of a reply; "" where there is none. */
function tokenIn(reply: Reply | undefined): string {
  if (reply?.status !== 200) return "";
  const { access_token: token }: { readonly access_token: string } = JSON.parse(reply.text);
  return token;
}
