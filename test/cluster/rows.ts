import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { rm, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { RqliteNode } from "../helpers/rqlite_node.ts";
import type { ClusterStage } from "./stage.ts";

/** What a fault leaves behind. */
export interface Aftermath {
  /** When a Gatepost node was killed, whose callbacks in flight may come again. */
  readonly killedAtMs?: number;
  /** Called when everything has ended. */
  readonly cleanUp?: () => void;
}

/** A fault under load. */
export interface Row {
  readonly name: string;
  /** Causes the fault, and repairs what does not recover by itself. */
  readonly run: (stage: ClusterStage) => Promise<Aftermath | void>;
  /** How long writes may be held up because of it, in addition to the 1.5 s of a failover. */
  readonly outageMs?: number;
  /** More flags of each rqlited. */
  readonly flags?: readonly string[];
}

const DEAD_MS = 3_000;
/** Within this time a leader sends again to a node that had failed. */
const BACKOFF_MS = 25_000;

/** The kill matrix, in order. */
export const ROWS: readonly Row[] = [
  { name: "leader", run: async ({ rqlite }) => restartLater(await rqlite.leader()) },
  { name: "follower", run: async (stage) => restartLater(await follower(stage)) },
  {
    name: "all three",
    outageMs: 600 + 1_000, // and the start of a process
    async run({ rqlite: { nodes } }) {
      await Promise.all(nodes.map((node) => node.kill()));
      await sleep(600);
      await Promise.all(nodes.map((node) => node.restart()));
    },
  },
  { name: "gatepost", run: killGatepost },
  stopLeader(2_000),
  stopLeader(10_000),
  stopQuorum(6_000),
  stopQuorum(20_000),
  {
    name: "leader and gatepost",
    async run(stage) {
      const leader = await stage.rqlite.leader();
      const [killed] = await Promise.all([killGatepost(stage), restartLater(leader)]);
      return killed;
    },
  },
  {
    name: "rolling restart",
    async run({ rqlite: { nodes } }) {
      for (const node of nodes) {
        await node.kill("SIGTERM");
        await node.restart();
        await sleep(1_000);
      }
    },
  },
  {
    name: "wiped folder",
    async run(stage) {
      const node = await follower(stage);
      await node.kill();
      await rm(node.folder, { recursive: true });
      await node.restart();
      await sleep(DEAD_MS);
    },
  },
  {
    name: "clock +5 s",
    async run({ setClock }) {
      await setClock(5_000);
      await sleep(4_000);
      await setClock(0);
      await sleep(1_000);
    },
  },
  {
    name: "disk full",
    outageMs: 2_500, // when the leader is restarted, only one other node has all, and can lead
    run: fillDisk,
  },
  {
    name: "snapshots",
    flags: ["-raft-snap", "100", "-raft-snap-int", "200ms"],
    async run({ rqlite }) {
      await sleep(2_000);
      await restartLater(await rqlite.leader());
    },
  },
];

async function restartLater(node: RqliteNode): Promise<void> {
  await node.kill();
  await sleep(DEAD_MS);
  await node.restart();
}

async function follower({ rqlite }: ClusterStage): Promise<RqliteNode> {
  const leader = await rqlite.leader();
  const node = rqlite.nodes.find((node) => node !== leader);
  if (node === undefined) throw new Error("no follower");
  return node;
}

/** Kills the second Gatepost while callbacks of it are in flight. */
async function killGatepost({ gateposts, recorder }: ClusterStage): Promise<Aftermath> {
  recorder.delay(() => 600);
  await sleep(400);
  const killedAtMs = performance.now();
  await gateposts[1].server.kill();
  recorder.delay(() => 0);
  await sleep(DEAD_MS);
  return { killedAtMs };
}

function stopLeader(ms: number): Row {
  return {
    name: `leader stopped ${ms / 1000} s`,
    async run({ rqlite }) {
      const leader = await rqlite.leader();
      await leader.kill("SIGSTOP");
      await sleep(ms);
      await leader.kill("SIGCONT");
    },
  };
}

function stopQuorum(ms: number): Row {
  return {
    name: `no quorum ${ms / 1000} s`,
    outageMs: ms + 1_500, // and an election, which all nodes join late
    async run({ rqlite }) {
      const leader = await rqlite.leader();
      const followers = rqlite.nodes.filter((node) => node !== leader);
      for (const node of followers) await node.kill("SIGSTOP");
      await sleep(ms);
      for (const node of followers) await node.kill("SIGCONT");
    },
  };
}

/**
 * Moves a follower to a small disk, fills that for 4 seconds, frees it, and lets the node begin
 * again from nothing, since its database may lack what it could not store.
 */
async function fillDisk(stage: ClusterStage): Promise<Aftermath> {
  const node = await follower(stage);
  const disk = mkdtempSync(join(tmpdir(), "gatepost-disk-"));
  const { status, stderr } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=256m", "none", disk]);
  if (status !== 0) throw new Error(`this row needs the right to mount: ${stderr}`);
  await node.kill();
  await rm(node.folder, { recursive: true });
  await symlink(disk, node.folder);
  await node.restart();
  await sleep(1_000);
  const ballast = join(disk, "ballast");
  for (const bytes of [1_048_576, 1_024, 1]) fill(ballast, bytes);
  await sleep(4_000);
  await node.kill();
  for (const name of readdirSync(disk)) rmSync(join(disk, name), { recursive: true });
  await node.restart();
  await makeLeaderSend(stage, node);
  return {
    cleanUp() {
      spawnSync("umount", [disk]);
      rmSync(disk, { recursive: true });
    },
  };
}

/**
 * Restarts the leader if it does not send to a node: it may have stopped for ever when the node
 * refused an entry (https://github.com/hashicorp/raft/issues/612), even if the node is well again.
 */
async function makeLeaderSend({ rqlite }: ClusterStage, node: RqliteNode): Promise<void> {
  const leader = await rqlite.leader();
  const wanted = await findCommitIndex(leader);
  for (const endMs = performance.now() + BACKOFF_MS; await findCommitIndex(node) < wanted;) {
    if (performance.now() > endMs) {
      await leader.kill(); // SIGTERM would not end it
      await leader.restart();
      return;
    }
    await sleep(100);
  }
}

async function findCommitIndex(node: RqliteNode): Promise<number> {
  return JSON.parse(await node.call("/status")).store.raft.commit_index;
}

/** Appends that many bytes at a time until the disk is full. */
function fill(file: string, bytes: number): void {
  for (;;) {
    try {
      appendFileSync(file, Buffer.alloc(bytes));
    } catch {
      return;
    }
  }
}
