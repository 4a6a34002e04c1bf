// On SQLite alone: it is about pages and their paths.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { type Gatepost, startGatepost } from "../helpers/gatepost.ts";
import { createClient } from "../helpers/http_client.ts";

const BROWSER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

for (const base of ["", "/gate/v1"]) {
  describe(`the front door at "${base}/"`, () => {
    let gatepost: Gatepost;
    before(async () => {
      const env = {
        GATEPOST_NAME: "Northwind & Sons",
        ...base !== "" && { GATEPOST_BASE_URL: `http://api.example${base}` },
      };
      gatepost = await startGatepost({ env });
    });
    after(() => gatepost.stop());

    test("is a page for browsers with the service's name and links that all work", async () => {
      const page = await gatepost.api.get("/", BROWSER);
      assert.equal(page.status, 200);
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
      assert.match(page.headers.get("vary") ?? "", /\baccept\b/i);
      assert.match(page.text, /<title>[^<]* · Northwind &amp; Sons<\/title>/);
      const links = [...page.text.matchAll(/<a href="([^"]*)"/g)].map(([, link = ""]) => link);
      for (const to of ["/openapi.json", "/account"]) assert.ok(links.includes(base + to), to);
      const root = createClient(gatepost.server.url);
      for (const link of links) assert.equal((await root.get(link)).status, 200, link);
    });

    test("is a list of links in JSON for programs", async () => {
      const response = await gatepost.api.get("/");
      assert.equal(response.status, 200);
      assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
      assert.deepEqual(response.json(), {
        name: "Northwind & Sons",
        issuer: gatepost.issuer,
        links: {
          account: `${gatepost.issuer}/account`,
          console: `${gatepost.issuer}/console`,
          openapi: `${gatepost.issuer}/openapi.json`,
          authorization_server: `${gatepost.issuer}/.well-known/oauth-authorization-server`,
          protected_resource: `${gatepost.issuer}/.well-known/oauth-protected-resource`,
          health: `${gatepost.issuer}/system/health`,
        },
      });
    });

    test("is linked from a browser's 404 page; a program gets a problem document", async () => {
      const page = await gatepost.api.get("/consloe", BROWSER);
      assert.equal(page.status, 404);
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
      assert.ok(page.text.includes(`<a href="${base}/">`));
      const program = await gatepost.api.get("/consloe");
      assert.equal(program.status, 404);
      assert.equal(program.headers.get("content-type"), "application/problem+json");
    });

    for (const path of ["/favicon.ico", "/mark.svg"]) {
      test(`has its icon at ${path}, which may be cached`, async () => {
        const response = await gatepost.api.get(path);
        assert.equal(response.status, 200);
        assert.equal(response.headers.get("content-type"), "image/svg+xml");
        assert.match(response.headers.get("cache-control") ?? "", /max-age=[1-9]/);
        assert.match(response.text, /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg"/);
      });
    }

    test("shows who is signed in to that browser only", async () => {
      const user = await gatepost.createUser();
      const browser = gatepost.openBrowser();
      await gatepost.allow(browser, await gatepost.createApp(), user);
      const cookie = browser.cookies().map(({ name, value }) => `${name}=${value}`).join("; ");
      const page = await browser.get("/", { ...BROWSER, cookie });
      assert.ok(page.text.includes(user.username));
      assert.ok(!(await gatepost.api.get("/", BROWSER)).text.includes(user.username));
    });
  });
}

test("the front door is also at the base URL without a trailing slash", async () => {
  const env = { GATEPOST_BASE_URL: "https://api.example/gate" };
  const gatepost = await startGatepost({ env });
  try {
    const root = createClient(gatepost.server.url);
    assert.equal((await root.get("/gate", BROWSER)).status, 200);
    assert.equal((await root.get("/", BROWSER)).status, 404);
  } finally {
    await gatepost.stop();
  }
});

test("an endpoint module may serve /, but nothing under the service's own prefixes", async () => {
  const folder = await mkdtemp(join(tmpdir(), "gatepost-front-door-"));
  const mine = (path: string) =>
    `{ method: "GET", path: "${path}", public: true, handle: () => "mine" }`;
  await writeFile(
    join(folder, "home.mjs"),
    `export const home = ${mine("/")}, thing = ${mine("/:shop/:thing")};`,
  );
  const gatepost = await startGatepost({ env: { GATEPOST_ENDPOINTS: folder } });
  try {
    for (const path of ["/", "/shop/1", "/back/user"]) {
      assert.equal((await gatepost.api.get(path, BROWSER)).text, '"mine"');
    }
    for (const path of ["/backend/thing", "/console/thing", "/.well-known/thing"]) {
      assert.doesNotMatch((await gatepost.api.get(path, BROWSER)).text, /mine/);
    }
  } finally {
    await gatepost.stop();
    await rm(folder, { recursive: true });
  }
});
