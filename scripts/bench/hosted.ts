import type { Stage } from "./bench_case.ts";
import { comparison, type Contest, loadSide, type Reference, type Side } from "./compare.ts";
import { startGatepost } from "./gatepost.ts";
import { requestBytes } from "./http_load.ts";
import type { FixedResponse } from "./limit_server.ts";
import { startFastify } from "./peers.ts";
import { type ServerProcess, startProcess } from "./processes.ts";
import { CONNECTIONS, LIMIT_SERVER } from "./tokens.ts";

const ITEM_PATH = "/items/4711";
const ORDER = JSON.stringify({
  item: "lamp",
  quantity: 2,
  note: "leave it with the neighbour at number 12, second floor",
});

/** Compares hosted endpoints that need a token with bare node:http. */
export const HOSTED_CASES = [
  comparison("get", "protected hosted GET, warm token", startGetContest),
  comparison("dispatch", "hosted POST, one durable event", startDispatchContest),
];

async function startGetContest(stage: Stage): Promise<Contest> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  const bytes = itemRequest(await gatepost.appToken());
  const response = await readResponse(gatepost.url + ITEM_PATH, await gatepost.appToken());
  const limit = await startProcess([LIMIT_SERVER, "answer", JSON.stringify(response)]);
  const peers = stage.peers === undefined ? [] : [
    { least: 6, name: "fastify-jwt", ...await startFastify(stage.peers, response.body, false) },
    {
      least: 1.2,
      name: "fastify-jwt, cached",
      ...await startFastify(stage.peers, response.body, true),
    },
  ];
  return {
    gatepost: sideOf("Gatepost", gatepost, bytes),
    references: [
      { side: sideOf("bare node:http", limit, bytes), target: { kind: "at least", value: 0.75 } },
      ...peers.map(({ name, server, token, least }): Reference => ({
        side: sideOf(name, server, itemRequest(token)),
        target: { kind: "at least", value: least },
      })),
    ],
    stop: async () => {
      const all = [gatepost, limit, ...peers.map(({ server }) => server)];
      await Promise.all(all.map((server) => server.stop()));
    },
  };
}

/** The GET that is measured, both here and beside other load. */
export function itemRequest(token: string): Buffer {
  return requestBytes("GET", ITEM_PATH, { Authorization: `Bearer ${token}` });
}

/** Reads the body and headers that Gatepost returns, without those that Node adds itself. */
async function readResponse(url: string, token: string): Promise<FixedResponse> {
  const response = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  const body = await response.text();
  if (response.status !== 200) throw new Error(`${url}: ${response.status} ${body}`);
  const own = ["connection", "content-length", "date", "keep-alive"];
  const headers = [...response.headers].filter(([name]) => !own.includes(name));
  return { headers: Object.fromEntries(headers), body };
}

async function startDispatchContest(stage: Stage): Promise<Contest> {
  const gatepost = await startGatepost(stage.newFolder(), { nodeFlags: stage.nodeFlags });
  const limit = await startProcess([LIMIT_SERVER, "echo"]);
  const bytes = requestBytes("POST", "/orders", {
    Authorization: `Bearer ${await gatepost.appToken()}`,
    "Content-Type": "application/json",
  }, ORDER);
  return {
    gatepost: sideOf("Gatepost", gatepost, bytes),
    references: [
      { side: sideOf("bare echo", limit, bytes), target: { kind: "at least", value: 0.6 } },
    ],
    stop: async () => void await Promise.all([gatepost.stop(), limit.stop()]),
  };
}

function sideOf(name: string, server: ServerProcess, bytes: Buffer): Side {
  return loadSide(name, server, CONNECTIONS, () => bytes);
}
