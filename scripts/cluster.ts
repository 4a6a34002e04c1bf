/**
 * Starts three rqlited and two Gatepost nodes on this machine.
 *
 *   npm run cluster              for you to try, until Ctrl+C
 *   npm run cluster -- --kill    kills the leader under load, and prints what the clients saw
 */
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { join } from "node:path";
import { findBrokenPromises } from "../test/cluster/promises.ts";
import { ROWS } from "../test/cluster/rows.ts";
import { runTrial } from "../test/cluster/trial.ts";
import { startServer } from "../test/helpers/process.ts";
import { createRandom } from "../test/helpers/random.ts";
import { runRqlited } from "../test/helpers/rqlited.ts";
import { findFreePort } from "./free_port.ts";
import { readOptions } from "./read_options.ts";

const ENDPOINTS = join(import.meta.dirname, "demo/endpoints");

/** Keeps everything running until a signal comes. */
async function serve(): Promise<number> {
  const ended = Promise.race(["SIGINT", "SIGTERM"].map((signal) => once(process, signal)));
  const rqlite = await runRqlited({ nodes: 3 });
  const password = randomBytes(9).toString("base64url");
  const ports = [await findFreePort(), await findFreePort()];
  const servers = await Promise.all(ports.map((port) =>
    startServer({
      env: {
        GATEPOST_PORT: String(port),
        GATEPOST_BASE_URL: `http://127.0.0.1:${ports[0]}`, // one for both, or tokens would differ
        GATEPOST_DATABASE: rqlite.address,
        GATEPOST_ENDPOINTS: ENDPOINTS,
        GATEPOST_ADMIN_PASSWORD: password,
      },
    })
  ));
  const [first = "", second = ""] = servers.map(({ url }) => url);
  const leader = await rqlite.leader();
  const nodes = rqlite.nodes.map(({ url, pid }) =>
    `  rqlited    ${url}, process ${pid}${pid === leader.pid ? ", the leader" : ""}`
  );
  const gateposts = servers.map(({ url, pid }) => `  Gatepost   ${url}, process ${pid}`);
  console.log(`
Gatepost is running on a cluster.

${[...nodes, ...gateposts].join("\n")}
  Log in as  admin
  Password   ${password}

Log in at one node, use the token at the other, kill the leader, and use it again:

  TOKEN=$(curl -s -H 'content-type: application/json' ${first}/consumer/login \\
    -d '{"username":"admin","password":"${password}"}' | sed 's/.*"token":"//; s/".*//')
  curl -i -H "authorization: Bearer $TOKEN" ${second}/authorization/whoami
  kill -9 ${leader.pid}; curl -i -H "authorization: Bearer $TOKEN" ${second}/backend/user

Ctrl+C stops everything.
`);
  await ended;
  await Promise.all(servers.map((server) => server.stop()));
  await rqlite.stop();
  return 0;
}

/** Kills the leader under load; returns 1 if a promise is broken. */
async function killLeader(): Promise<number> {
  const [row] = ROWS.filter(({ name }) => name === "leader");
  if (row === undefined) throw new Error("there is no row named leader");
  console.log("Three rqlited, two Gatepost nodes and eight clients; the leader is killed ...");
  const figures = await runTrial(row, createRandom(Date.now()));
  const { gets, chains } = figures;
  const slowest = Math.max(...gets.tookMs).toFixed();
  console.log(`
  Longest time without a write    ${(figures.gapMs / 1000).toFixed(1)} s
  Events acknowledged             ${figures.acknowledged}
  Events lost                     ${figures.lost}
  Events delivered twice          ${figures.torn + figures.unexplained}
  Events refused, yet delivered   ${figures.refused}, ${figures.sentThoughRefused}
  Refresh tokens exchanged        ${chains.exchanged}
  Refresh tokens lost             ${chains.broken}
  Protected GETs                  ${gets.tookMs.length}, the slowest took ${slowest} ms
  Protected GETs failed           ${gets.failed}
  Nodes equal at the end          ${figures.differing.length === 0 ? "yes" : "no"}
`);
  const broken = findBrokenPromises(row, figures);
  for (const promise of broken) console.log(`Broken: ${promise}`);
  return broken.length === 0 ? 0 : 1;
}

const { values } = readOptions({ options: { kill: { type: "boolean", default: false } } });
process.exitCode = await (values.kill ? killLeader() : serve());
