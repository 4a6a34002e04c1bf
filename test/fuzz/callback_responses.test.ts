import assert from "node:assert/strict";
import { createServer, type Socket } from "node:net";
import { after, before, test } from "node:test";
import { brotliCompressSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { createCallbackSender } from "../../src/delivery/callback.ts";
import { createEgress } from "../../src/outbound/egress.ts";
import { listenOnLoopback } from "../helpers/listen.ts";
import { readCidr } from "../helpers/cidr.ts";
import { openRandom, type Random } from "../helpers/random.ts";

const RESPONSES = 1_000;
const AT_ONCE = 8;
const TIMEOUT_MS = 300;
const PATIENCE_MS = 20_000;

const STATUSES = [
  "200", "200", "200", "204", "205", "206", "304", "301", "401", "407", "410", "421", "500", "599",
  "999", "099", "100", "101", "103",
];
const ENCODERS: Readonly<Record<string, (bytes: Buffer) => Buffer>> = {
  "gzip": gzipSync,
  "x-gzip": gzipSync,
  "deflate": deflateSync,
  "br": brotliCompressSync,
  "zstd": zstdCompressSync,
  "identity": (bytes) => bytes,
  "": (bytes) => bytes,
};
const FIELDS = [
  "location: /x", "location: http://[", "retry-after: -1", "connection: close", ": no name",
  "connection: upgrade\r\nupgrade: websocket", "keep-alive: timeout=1", "content-length: 5",
  "set-cookie: \x80=\xff", "x:\ty", "transfer-encoding: gzip",
];
const BEFORE = ["HTTP/1.1 103 Early\r\n\r\n", "HTTP/1.1 100 Continue\r\n\r\n", "\r\n"];
const CHUNK_ENDS = ["\r\n0\r\n\r\n", "\r\n0\r\nt: v\r\n\r\n", "\r\nzz\r\n", "\r\n"];

/** A response that is more or less valid. */
function makeResponse(random: Random): Buffer {
  const codings = Array.from({ length: random.chance(60) ? 0 : random.below(9) }, () =>
    random.pick(Object.keys(ENCODERS)));
  let body: Buffer = random.chance(20) ? Buffer.from(random.bytes(500))
    : Buffer.alloc(random.below(50_000));
  if (random.chance(70)) for (const each of codings) body = ENCODERS[each]?.(body) ?? body;
  const lines = [`HTTP/1.${random.pick("0111")} ${random.pick(STATUSES)} X`];
  if (codings.length > 0) lines.push(`content-encoding: ${codings.join(", ")}`);
  if (random.chance(15)) lines.push(random.pick(FIELDS));
  if (random.chance(50)) {
    lines.push("transfer-encoding: chunked");
    const size = Buffer.from(`${body.length.toString(16)}\r\n`);
    body = Buffer.concat([size, body, Buffer.from(random.pick(CHUNK_ENDS))]);
  } else if (random.chance(80)) {
    lines.push(`content-length: ${body.length + random.pick([0, 0, 0, 1, 100])}`);
  }
  const head = `${random.chance(10) ? random.pick(BEFORE) : ""}${lines.join("\r\n")}\r\n\r\n`;
  const whole = Buffer.concat([Buffer.from(head, "latin1"), body]);
  return random.chance(20) ? whole.subarray(0, random.below(whole.length)) : whole;
}

/** Sends it in a few parts, and maybe ends or breaks the connection then. */
function respond(socket: Socket, random: Random): void {
  const whole = makeResponse(random);
  const at = random.chance(70) ? whole.length : random.below(whole.length + 1);
  const end = random.pick(["stay", "stay", "end", "break"]);
  socket.write(whole.subarray(0, at));
  setImmediate(() => {
    if (socket.destroyed) return;
    socket.write(whole.subarray(at), () => {
      if (end === "end") socket.end();
      if (end === "break") socket.resetAndDestroy();
    });
  });
}

const allow = [readCidr("127.0.0.1/32")];
const egress = createEgress({ allow, connectionsPerOrigin: 64, timeoutMs: TIMEOUT_MS });
const { send } = createCallbackSender({ egress, timeoutMs: TIMEOUT_MS, now: Date.now });
const sockets = new Set<Socket>();
let react: (socket: Socket) => void = () => {};
let endpoint = "";
const server = createServer((socket) => {
  sockets.add(socket);
  socket.once("close", () => sockets.delete(socket)).on("error", () => socket.destroy());
  socket.on("data", () => react(socket));
});

before(async () => {
  endpoint = `http://${await listenOnLoopback(server)}`;
});
after(async () => {
  await egress.close();
  for (const socket of sockets) socket.destroy();
  server.close();
});

// An error that nobody handles fails the test: it would end the thread, or the process.
test("every response of a subscriber becomes an outcome, and no connection stays", async (t) => {
  const random = openRandom(t);
  react = (socket) => respond(socket, random);
  const callback = {
    id: "d1", event: "e", json: "1", endpoint, attempt: 1, secrets: ["whsec_AAAA"],
  };
  let left = RESPONSES;
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (left-- > 0) assert.ok("outcome" in await send(callback));
  }));
  for (const until = Date.now() + PATIENCE_MS; sockets.size > 0 && Date.now() < until;) {
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  assert.equal(sockets.size, 0);
});
