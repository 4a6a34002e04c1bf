import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Recorder, startRecorder } from "../crash/recorder.ts";
import { type Gatepost, startGatepost, type TestApp, type TestUser } from "../helpers/gatepost.ts";
import { SERVER_ENTRY } from "../helpers/process.ts";
import { bearer } from "../helpers/requests.ts";
import { type RqliteCluster, runRqlited } from "../helpers/rqlited.ts";

/** Three rqlited, two Gatepost on them, and a receiver of callbacks. */
export interface ClusterStage {
  readonly rqlite: RqliteCluster;
  readonly gateposts: readonly [Gatepost, Gatepost];
  readonly recorder: Recorder;
  /** Path and event of each subscription. */
  readonly subscriptions: readonly (readonly [path: string, event: string])[];
  /** An app that may use every type of grant. */
  readonly app: TestApp;
  /** The app whose tokens are revoked. */
  readonly victim: TestApp;
  readonly user: TestUser;
  /** Sets the second Gatepost's wall clock that many milliseconds ahead of the true time. */
  setClock(aheadMs: number): Promise<void>;
  /** Stops everything. */
  stop(): Promise<void>;
}

const SUBSCRIPTIONS = [["/a", "order.placed"], ["/b", "order.placed"]] as const;
const SCOPES = ["consumer", "orders"];
const SET_CLOCK = import.meta.resolve("../helpers/set_clock.ts");
const ENV = {
  GATEPOST_BASE_URL: "http://127.0.0.1:8080", // tokens are of one issuer, whatever the port
  GATEPOST_ENDPOINTS: fileURLToPath(new URL("./endpoints", import.meta.url)),
  GATEPOST_CALLBACK_ALLOW: "127.0.0.0/8",
  GATEPOST_RESEND_DELAYS: "200ms,500ms,1s",
};

/** Starts everything; `rqliteFlags` are more flags of each rqlited. */
export async function startStage(rqliteFlags: readonly string[] = []): Promise<ClusterStage> {
  await using started = new AsyncDisposableStack(); // stops everything if this throws
  const folder = await mkdtemp(join(tmpdir(), "gatepost-cluster-"));
  started.defer(() => rm(folder, { recursive: true }));
  const clock = join(folder, "clock");
  const setClock = (aheadMs: number) => writeFile(clock, String(aheadMs));
  await setClock(0);
  const recorder = await startRecorder();
  started.defer(() => recorder.close());
  const rqlite = await runRqlited({ nodes: 3, flags: rqliteFlags });
  started.defer(() => rqlite.stop());
  const start = async (more: object = {}) => {
    const gatepost = await startGatepost({
      entry: SERVER_ENTRY,
      ...more,
      env: { ...ENV, GATEPOST_DATABASE: rqlite.address, TEST_CLOCK: clock },
    });
    started.defer(() => gatepost.server.kill());
    return gatepost;
  };
  const gatepost = await start();
  const gateposts = [gatepost, await start({ nodeFlags: ["--import", SET_CLOCK] })] as const;
  const user = await gatepost.createUser({ scopes: SCOPES });
  const grants = ["password", "refresh_token", "client_credentials"];
  const app = await gatepost.createApp({ scopes: SCOPES, grants });
  const victim = await gatepost.createApp({ scopes: SCOPES, grants });
  const token = await gatepost.login(user);
  for (const [path, event] of SUBSCRIPTIONS) {
    const body = { event, endpoint: recorder.url + path };
    const made = await gatepost.api.postJson("/consumer/subscription", body, bearer(token));
    if (made.status !== 201) throw new Error(made.text);
  }
  const stack = started.move();
  return {
    rqlite,
    gateposts,
    recorder,
    subscriptions: SUBSCRIPTIONS,
    app,
    victim,
    user,
    setClock,
    stop: () => stack.disposeAsync(),
  };
}
