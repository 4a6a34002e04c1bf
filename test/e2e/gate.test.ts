import assert from "node:assert/strict";
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { startGatepost } from "../helpers/gatepost.ts";
import { createDataFolder } from "../helpers/process.ts";
import { bearer } from "../helpers/requests.ts";

const DOCUMENTS = ["hosting/README.md", "cli/OPERATIONS.md"]
  .map((name) => new URL(`../../src/${name}`, import.meta.url));

/** The module of the documents that has this path, as a reader would copy it. */
async function readModule(path: string): Promise<string> {
  const texts = await Promise.all(DOCUMENTS.map((document) => readFile(document, "utf8")));
  const blocks = texts.flatMap((text) => [...text.matchAll(/^```ts\n(.*?)^```$/gms)])
    .map(([, code = ""]) => code);
  const found = blocks.filter((code) => code.includes(`path: "${path}"`));
  assert.equal(found.length, 1);
  return found[0] ?? "";
}

test("the gate and the stream work as they are written in the documents", async () => {
  const folder = await createDataFolder();
  const endpoints = join(folder, "endpoints");
  await mkdir(endpoints);
  await writeFile(join(endpoints, "gate.ts"), await readModule("/gate"));
  await writeFile(join(endpoints, "ticks.ts"), await readModule("/ticks"));
  const gatepost = await startGatepost({ env: { GATEPOST_ENDPOINTS: endpoints } });
  try {
    const user = await gatepost.createUser({ scopes: ["consumer", "orders"] });
    const open = await gatepost.api.get("/gate", bearer(await gatepost.login(user)));
    assert.deepEqual(
      [open.status, open.headers.get("x-auth-sub"), open.headers.get("x-auth-scope")],
      [204, user.id, "consumer orders"],
    );
    const poor = await gatepost.login(await gatepost.createUser());
    // With 401 and 403 a proxy denies access (ngx_http_auth_request_module).
    assert.equal((await gatepost.api.get("/gate", bearer(poor))).status, 403);
    const nobody = await gatepost.api.get("/gate");
    assert.equal(nobody.status, 401);
    assert.match(nobody.headers.get("www-authenticate") ?? "", /scope="orders"/);

    const stream = await fetch(`${gatepost.url}/ticks`);
    const reader = stream.body?.getReader();
    const first = await reader?.read();
    assert.equal(Buffer.from(first?.value ?? []).toString(), "data: tick\n\n");
    await reader?.cancel();
    assert.equal((await gatepost.api.get("/system/health")).status, 200);
  } finally {
    await gatepost.stop();
    await rm(folder, { recursive: true });
  }
});
