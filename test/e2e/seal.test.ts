// On SQLite alone: it reads the file.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { startGatepost } from "../helpers/gatepost.ts";
import { createDataFolder } from "../helpers/process.ts";
import { bearer, newName } from "../helpers/requests.ts";
import { readObject } from "../helpers/responses.ts";

test("a start with a first secret key leaves no readable secret in any file", async (t) => {
  const folder = await createDataFolder();
  const plain = await startGatepost({ folder });
  const token = bearer(await plain.login(await plain.createUser()));
  const subscription = { event: newName("event"), endpoint: "https://shop.example/" };
  const made = await plain.api.postJson("/consumer/subscription", subscription, token);
  const secret = String(readObject(made)["secret"]);
  const readable = () =>
    readdirSync(folder).filter((name) => {
      const bytes = readFileSync(join(folder, name));
      return ["PRIVATE KEY", "plain:", secret].some((text) => bytes.includes(text));
    });
  assert.ok(readable().length > 0, "without a key the secrets are readable");
  await plain.server.kill(); // a crash leaves the write-ahead log beside the file

  const env = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
  const encrypted = await startGatepost({ folder, env });
  t.after(async () => {
    await encrypted.stop();
    rmSync(folder, { recursive: true });
  });
  assert.deepEqual(readable(), []);
});
