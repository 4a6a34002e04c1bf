import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { until } from "../helpers/until.ts";
import { CHUNKED, get, post, startHttpStage } from "./http_stage.ts";

test("bodies in small chunks do not delay other clients", async (t) => {
  const { open, server } = await startHttpStage(t);
  const accepted: Socket[] = [];
  server.on("connection", (socket: Socket) => accepted.push(socket));
  const patient = await open();
  patient.write(get());
  await once(patient, "data");
  const flooding = await Promise.all(Array.from({ length: 30 }, open));
  await until(() => accepted.length === 31);
  for (const socket of flooding) socket.write(post(CHUNKED, "1\r\nx\r\n".repeat(10_000)));
  patient.write(get());
  await once(patient, "data");
  const read = accepted.reduce((sum, { bytesRead }) => sum + bytesRead, 0);
  assert.ok(read < 1_000_000, `${read} bytes of ${30 * 60_000}`);
});

test("unread bodies in small chunks take little memory", async (t) => {
  const { open, requests } = await startHttpStage(t, {
    async handle({ path }) {
      await delay(path === "/x" ? 0 : 60_000, undefined, { ref: false });
      return { status: 404 };
    },
  });
  const flooding = await Promise.all(Array.from({ length: 40 }, open));
  const before = process.memoryUsage();
  const sent = flooding.map((socket) => {
    socket.write(get());
    const body = "1\r\nx\r\n".repeat(16_000);
    return new Promise((resolve) => socket.write(post(CHUNKED, body), resolve));
  });
  await Promise.all(sent);
  await until(() => requests.length === 80);
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  const grown = heapUsed + arrayBuffers - before.heapUsed - before.arrayBuffers;
  assert.ok(grown < 80 * 2 ** 20, `${grown} bytes for ${40 * 16_000}`);
});
