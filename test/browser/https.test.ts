import assert from "node:assert/strict";
import { once } from "node:events";
import { request as forward } from "node:http";
import { createServer, type Server } from "node:https";
import { after, before, beforeEach, test } from "node:test";
import { type Browser, openBrowser } from "../helpers/browser.ts";
import { createCertificate } from "../helpers/certificate.ts";
import { startReceiver } from "../helpers/receiver.ts";
import { authorizeAddress, openStage, type Stage, type StageApp } from "./sign_in_stage.ts";

// A proxy that ends TLS, with the service on a path of its own behind it.
let proxy: Server;
let base: string;
let stage: Stage;
let browser: Browser;
let password: string;

before(async () => {
  const certificate = createCertificate();
  let target: URL | undefined;
  proxy = createServer({ key: certificate.key, cert: certificate.cert }, (request, response) => {
    const { method, url, headers } = request;
    const onward = forward(
      { host: target?.hostname, port: target?.port, method, path: url, headers },
      (received) => {
        response.writeHead(received.statusCode ?? 502, received.headers);
        received.pipe(response);
      },
    );
    onward.on("error", () => response.destroy());
    request.pipe(onward);
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const address = proxy.address();
  base = `https://localhost:${typeof address === "object" ? address?.port : ""}/gate`;
  stage = await openStage({
    env: { GATEPOST_BASE_URL: base, GATEPOST_TRUSTED_PROXIES: "127.0.0.1" },
    app: { tls: certificate },
    basePath: "/gate",
  });
  target = new URL(stage.server.url);
  browser = await openBrowser({ width: 1280, height: 800, javascript: false, insecure: true });
  password = await stage.addUser("marta", ["consumer"]);
});
after(async () => {
  await browser?.close();
  await stage?.close();
  proxy?.closeAllConnections();
  proxy?.close();
});
beforeEach(async () => {
  await browser.clearCookies();
  await browser.consoleErrors();
});

async function comeBack(app: StageApp): Promise<URLSearchParams> {
  await browser.goto(authorizeAddress(base, app, { state: "s" }));
  await browser.logIn("marta", password);
  await browser.click("button[value=allow]");
  return new URL(await browser.waitForUrl(/\/callback\?/)).searchParams;
}

test("under https the forms' redirect reaches an https app on another origin", async () => {
  const query = await comeBack(await stage.addApp("shop"));
  assert.notEqual(query.get("code"), null);
  assert.equal(query.get("iss"), base);
  assert.deepEqual(await browser.consoleErrors(), []);
});

test("under https the forms' redirect reaches an app on a loopback URL by plain http", async () => {
  const site = await startReceiver();
  site.answer("/native/callback", 200);
  try {
    const url = `${site.url}/native/`;
    const app = await stage.addApp("native", { url });
    const query = await comeBack({ ...app, redirectUri: `${url}callback` });
    assert.notEqual(query.get("code"), null);
  } finally {
    await site.close();
  }
});

test("under https each cookie is bound to the host: Secure, path /, __Host-", async () => {
  const app = await stage.addApp("cookies");
  await browser.goto(authorizeAddress(base, app));
  const cookies = await browser.cookies();
  assert.ok(cookies.some(({ name }) => /^__Host-gatepost-[\w-]{8}$/.test(name)));
  for (const { name, secure, httpOnly, path } of cookies) {
    assert.match(name, /^__Host-gatepost-[\w-]{8}(-device)?$/);
    assert.deepEqual([secure, httpOnly, path], [true, true, "/"]);
  }
});
