import assert from "node:assert/strict";
import { createServer, type RequestListener } from "node:http";
import { test, type TestContext } from "node:test";
import { createClient, parseForms } from "./http_client.ts";
import { listen } from "./listen.ts";

async function serve(t: TestContext, listener: RequestListener): Promise<string> {
  return `http://${await listen(t, createServer(listener))}`;
}

test("createClient() keeps cookies by path and age and sends them back", async (t) => {
  const url = await serve(t, (request, response) => {
    if (request.url === "/set") {
      response.setHeader("set-cookie", [
        "session=1; Path=/; HttpOnly; SameSite=Lax",
        "deep=2; Path=/authorization",
        "old=3; Path=/; Max-Age=3600",
      ]);
    }
    if (request.url === "/drop") response.setHeader("set-cookie", "old=; Path=/; Max-Age=0");
    response.end(request.headers.cookie ?? "");
  });
  const client = createClient(url);
  await client.get("/set");
  assert.equal((await client.get("/")).text, "session=1; old=3");
  assert.equal((await client.get("/authorization/authorize")).text, "session=1; deep=2; old=3");
  assert.equal((await client.get("/authorizations")).text, "session=1; old=3");
  await client.get("/drop");
  assert.equal((await client.get("/")).text, "session=1");
  assert.deepEqual(client.cookies().find(({ name }) => name === "session")?.attributes, {
    path: "/",
    httponly: "",
    samesite: "Lax",
  });
  client.clearCookies();
  assert.equal((await client.get("/")).text, "");
});

test("createClient() refuses the cookies that a browser refuses", async (t) => {
  const url = await serve(t, (request, response) => {
    response.setHeader("set-cookie", request.url === "/a" ? "a=1; Secure" : "__Host-a=1; Path=/");
    response.end();
  });
  await assert.rejects(createClient(url).get("/a"), /Secure/);
  await assert.rejects(createClient(url).get("/b"), /__Host-a/);
});

test("createClient() posts forms and JSON under the base URL's path", async (t) => {
  const url = await serve(t, (request, response) => {
    request.setEncoding("utf8").once("data", (body) => {
      response.end(JSON.stringify([request.url, request.headers["content-type"], body]));
    });
  });
  const client = createClient(`${url}/base`);
  assert.deepEqual((await client.postForm("/token", { a: "b c", d: "&" })).json(), [
    "/base/token", "application/x-www-form-urlencoded", "a=b+c&d=%26",
  ]);
  assert.deepEqual((await client.postJson("/login", { a: 1 })).json(), [
    "/base/login", "application/json", '{"a":1}',
  ]);
});

test("parseForms() finds fields with their initial values, and buttons", () => {
  const [form, other] = parseForms(`
    <!-- <form action="/no"></form> -->
    <form method="post" action="/a?x=1&amp;y=2">
      <input type="hidden" name="csrf" value="&quot;&lt;&#39;&#x41;&amp;lt;">
      <label>User <input name="username" autocomplete="username" required></label>
      <input type=checkbox name=keep> <input type=checkbox name=on value=1 checked>
      <input name="off" value="x" disabled>
      <select name="s"><option value="1">One<option value="2" selected>Two</select>
      <textarea name="t">a &amp; b</textarea>
      <button name="decision" value="allow">Allow <b>it</b></button>
      <button name="decision" value="deny">Deny</button>
    </form>
    <form><input type="submit" value="Go"></form>`);
  assert.equal(form?.action, "/a?x=1&y=2");
  assert.equal(form?.method, "POST");
  assert.deepEqual(form?.fields, { csrf: `"<'A&lt;`, username: "", on: "1", s: "2", t: "a & b" });
  assert.deepEqual(form?.buttons, [
    { name: "decision", value: "allow", text: "Allow it" },
    { name: "decision", value: "deny", text: "Deny" },
  ]);
  const user = form?.inputs.find(({ name }) => name === "username");
  assert.equal(user?.attributes["autocomplete"], "username");
  assert.deepEqual([other?.method, other?.action, other?.buttons[0]?.text], ["GET", "", "Go"]);
});

test("submit() and follow() go through a form and its redirect as a browser does", async (t) => {
  const seen: unknown[] = [];
  const url = await serve(t, (request, response) => {
    const policy = request.url === "/private" ? "no-referrer" : "same-origin";
    response.setHeader("referrer-policy", policy);
    if (request.method === "GET") {
      return void response.end(`<form method="post" action="/go"><input type="hidden" name="h"
        value="1"><input name="u"><button name="decision" value="deny">Deny</button></form>`);
    }
    request.setEncoding("utf8").once("data", (body) => {
      seen.push([request.url, request.headers.origin, body]);
      response.writeHead(303, { location: "../back?code=1" }).end();
    });
  });
  const client = createClient(url);
  const page = await client.get("/page");
  const submitted = await client.submit(page, { u: "ann" }, "deny");
  assert.equal(submitted.status, 303);
  assert.equal(submitted.location, `${url}/back?code=1`);
  assert.equal((await client.follow(submitted)).url, `${url}/back?code=1`);
  await client.submit(await client.get("/private"), {}, "deny");
  assert.deepEqual(seen, [
    ["/go", url, "h=1&u=ann&decision=deny"],
    ["/go", "null", "h=1&u=&decision=deny"],
  ]);
  assert.throws(() => client.submit(page, {}, "allow"), /no button/);
  assert.throws(() => client.submit(page, { x: "1" }), /no field x/);
});
