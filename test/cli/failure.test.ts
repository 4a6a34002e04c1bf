import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, request } from "node:http";
import { test } from "node:test";
import { invalid } from "../../src/base/problem.ts";
import { explain } from "../../src/cli/failure.ts";
import { listen } from "../helpers/listen.ts";

test("a connection that breaks is explained in one line", async (t) => {
  const host = await listen(t, createServer(({ socket }) => socket.destroy()));
  const [error] = await once(request(`http://${host}`).end(), "error");
  assert.equal(explain(error), "socket hang up");
});

test("an unexpected error keeps its stack", () => {
  assert.match(explain(new TypeError("x is not a function")), /\n +at /);
});

test("errors of the input are shown with the names of the command line's fields", () => {
  const errors = [
    { pointer: "/redirect_uris/0", detail: "Must be https." },
    { pointer: "/name", detail: "Is required." },
  ];
  assert.equal(
    explain(invalid(errors, "body")),
    "The input is not valid:\n  redirect_uris 1: Must be https.\n  name: Is required.",
  );
});
