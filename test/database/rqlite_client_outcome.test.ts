import assert from "node:assert/strict";
import { createServer } from "node:net";
import { test } from "node:test";
import { OutcomeUnknownError, UnavailableError } from "../../src/database/database.ts";
import { createRqliteClient } from "../../src/database/rqlite_client.ts";
import { listen } from "../helpers/listen.ts";
import { type Handle, isRefusal, refuse, stage, succeed } from "./rqlite_client_stage.ts";

for (const content of ['{"results":[]}', '{"results":[{},{}]}', '{"results":null}', "{}", ""]) {
  test(`a statement may have run if the response is ${content || "empty"}`, async (t) => {
    const { ask, does } = await stage(t);
    does((_, response) => void response.end(content));
    await assert.rejects(ask("", 400), OutcomeUnknownError);
    const asked = ask();
    setTimeout(() => does(succeed), 100);
    assert.deepEqual(await asked, [{}]);
  });
}

for (const how of ["breaks off", "stalls"] as const) {
  test(`a statement may have run if its response ${how}`, async (t) => {
    const { ask, asked, does } = await stage(t);
    const begin: Handle = ({ socket }, response) => {
      response.write('{"results":[{', () => how === "breaks off" && socket.destroy());
    };
    does(begin);
    await assert.rejects(ask("", 300), OutcomeUnknownError);
    if (how === "stalls") return;
    const before = asked();
    does((request, response) => (asked() === before + 1 ? begin : succeed)(request, response));
    assert.deepEqual([await ask(), asked()], [[{}], before + 2]);
  });
}

for (const isKept of [false, true]) {
  const where = isKept ? " on a kept connection" : "";
  test(`later refusals do not change that a statement may have run${where}`, async (t) => {
    const { ask, asked, does } = await stage(t);
    if (isKept) await ask();
    const first = asked() + 1;
    does((request, response) => {
      if (asked() === first) request.socket.destroy();
      else refuse(request, response);
    });
    await assert.rejects(ask("", 300), OutcomeUnknownError);
    assert.ok(asked() > first);
  });
}

for (const [status, content, mayHaveRun] of [
  [301, "", false],
  [401, "", false],
  [499, "", false],
  [500, "", true],
  [503, "busy", true],
  [503, "leader not found", false],
] as const) {
  const name = `a statement ${mayHaveRun ? "may" : "cannot"} have run`;
  test(`${name} if the response is ${status} ${content}`, async (t) => {
    const { ask, does } = await stage(t);
    does((_, response) => response.writeHead(status).end(content));
    await assert.rejects(ask("", 150), (error) => isRefusal(error) !== mayHaveRun &&
      error instanceof UnavailableError);
  });
}

for (const sent of ["", "HTTP/1.1 400 Bad Request\r\n\r\n"]) {
  test(`TLS to a node that sends "${sent.trim()}" fails with one line, as not run`, async (t) => {
    const server = createServer((socket) => {
      socket.on("error", () => {}).once("data", () => sent ? socket.end(sent) : socket.destroy());
    });
    const nodes = [await listen(t, server)];
    const client = createRqliteClient({ nodes, isTls: true, credentials: undefined });
    t.after(client.close);
    const asked = client.ask(() => "/", ['"SELECT 1"'], performance.now() + 400);
    await assert.rejects(asked, (error: Error) => isRefusal(error) && !/\n/.test(error.message));
  });
}
