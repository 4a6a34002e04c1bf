import { rmSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Certificate } from "./certificate.ts";
import { findRqlited } from "./find_rqlited.ts";
import { createRqliteNode, type RqliteNode } from "./rqlite_node.ts";

/** A user of the nodes, with all permissions unless `perms` names some. */
interface RqliteUser {
  readonly username: string;
  readonly password: string;
  readonly perms?: readonly string[];
}

export interface RqliteOptions {
  /** How many rqlited; 1 by default. */
  readonly nodes?: number;
  /** The user as whom the nodes join; then they accept only this one and `users`. */
  readonly auth?: RqliteUser;
  readonly users?: readonly RqliteUser[];
  /** The certificate for HTTPS; the address then is `rqlites://`. */
  readonly tls?: Certificate;
  /** Which nodes ignore foreign keys; none by default. */
  readonly withoutFk?: readonly number[];
  /** More flags of rqlited, for each node. */
  readonly flags?: readonly string[];
}

/** Some rqlited that replicate one database. */
export interface RqliteCluster {
  /** The value for GATEPOST_DATABASE: "rqlite://127.0.0.1:20000,127.0.0.1:20002". */
  readonly address: string;
  readonly nodes: readonly RqliteNode[];
  /** Returns the leader; waits until there is one. */
  leader(): Promise<RqliteNode>;
  /** Kills all nodes and removes their data. */
  stop(): Promise<void>;
}

const LEADER_MS = 60_000;

/** The functions that end running clusters when this process ends without having stopped them. */
const running = new Set<() => void>();
process.once("exit", () => running.forEach((stop) => stop()));

/** Starts a cluster, which is stopped when the test ends. */
export async function startRqlited(
  test: { after(end: () => Promise<void>): void },
  options: RqliteOptions = {},
): Promise<RqliteCluster> {
  const cluster = await runRqlited(options);
  test.after(() => cluster.stop());
  return cluster;
}

/** Starts a cluster on the loopback; resolves when each node knows the leader. */
export async function runRqlited(options: RqliteOptions = {}): Promise<RqliteCluster> {
  const program = await findRqlited();
  const folder = await mkdtemp(join(tmpdir(), "gatepost-rqlite-"));
  const nodes = await createNodes(program, folder, options);
  const stopWithProcess = () => {
    for (const node of nodes) void node.kill();
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  running.add(stopWithProcess);
  const cluster: RqliteCluster = {
    address: `rqlite${options.tls === undefined ? "" : "s"}://${nodes.map(hostOf)}`,
    nodes,
    leader: () => findLeader(nodes),
    async stop() {
      running.delete(stopWithProcess);
      await Promise.all(nodes.map((node) => node.kill()));
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await Promise.all(nodes.map((node) => node.restart()));
  } catch (error) {
    await cluster.stop();
    throw error;
  }
  return cluster;
}

async function createNodes(
  program: string,
  folder: string,
  options: RqliteOptions,
): Promise<RqliteNode[]> {
  const { nodes: count = 1, auth, tls, withoutFk = [], flags = [] } = options;
  const ports = await findPorts(2 * count);
  const [httpPorts, raftPorts] = [ports.slice(0, count), ports.slice(count)];
  const members = raftPorts.map((port) => `127.0.0.1:${port}`).join();
  const common = [
    ...(count > 1 ? ["-bootstrap-expect", String(count), "-join", members] : []),
    ...raftTimeouts(count),
    ...(await writeAccess(folder, options)),
    ...flags,
  ];
  return httpPorts.map((port, index) => {
    const data = join(folder, `node-${index}`);
    const own = ["-http-addr", `127.0.0.1:${port}`, "-raft-addr", `127.0.0.1:${raftPorts[index]}`];
    return createRqliteNode({
      url: `http${tls === undefined ? "" : "s"}://127.0.0.1:${port}`,
      folder: data,
      program,
      args: [...own, ...withoutFk.includes(index) ? [] : ["-fk"], ...common, data],
      ...(auth !== undefined && { auth: `${auth.username}:${auth.password}` }),
      ...(tls !== undefined && { ca: tls.ca }),
    });
  });
}

/** The timeouts that the README advises; a single node need not wait for a leader's heartbeat. */
function raftTimeouts(count: number): string[] {
  const [timeout, lease] = count > 1 ? ["250ms", "200ms"] : ["50ms", "50ms"];
  return [
    ...["-raft-timeout", timeout],
    ...["-raft-election-timeout", timeout],
    ...["-raft-leader-lease-timeout", lease],
  ];
}

/** Writes the files of the users and of the certificate; returns the flags that name the files. */
async function writeAccess(
  folder: string,
  { auth, users = [], tls }: RqliteOptions,
): Promise<string[]> {
  const flags: string[] = [];
  const write = async (flag: string, content: string) => {
    const path = join(folder, flag);
    await writeFile(path, content, { mode: 0o600 });
    flags.push(`-${flag}`, path);
  };
  if (auth !== undefined) {
    const all = [auth, ...users].map((user) => ({ perms: ["all"], ...user }));
    await write("auth", JSON.stringify(all));
    flags.push("-join-as", auth.username);
  }
  if (tls !== undefined) {
    await write("http-cert", tls.cert);
    await write("http-key", tls.key);
  }
  return flags;
}

async function findLeader(nodes: readonly RqliteNode[]): Promise<RqliteNode> {
  for (const endMs = performance.now() + LEADER_MS; performance.now() < endMs;) {
    // The first node that claims it, since a stopped node does not respond.
    const leader = await Promise.any(nodes.map(checkLeader)).catch(() => undefined);
    if (leader !== undefined) return leader;
    await sleep(20);
  }
  throw new Error("no node leads");
}

async function checkLeader(node: RqliteNode): Promise<RqliteNode> {
  const { store }: { readonly store: { readonly raft: { readonly state: string } } } =
    JSON.parse(await node.call("/status"));
  if (store.raft.state !== "Leader") throw new Error("another node leads");
  return node;
}

/**
 * Finds free ports below those of outgoing connections, which could otherwise take the port of a
 * node while the node is down.
 */
async function findPorts(count: number): Promise<number[]> {
  const ports: number[] = [];
  while (ports.length < count) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    if (!ports.includes(port) && await isFree(port)) ports.push(port);
  }
  return ports;
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once("error", () => resolve(false));
    probe.listen(port, "127.0.0.1", () => probe.close(() => resolve(true)));
  });
}

function hostOf({ url }: RqliteNode): string {
  return new URL(url).host;
}
