// On SQLite alone: it reads the file.
import assert from "node:assert/strict";
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { bearer, newName, readObject, startGatepost } from "../helpers/gatepost.ts";
import { createDataFolder } from "../helpers/process.ts";

test("once a secret key is set no file holds anything readable, even while it runs", async (t) => {
  const folder = await createDataFolder();
  const open = await startGatepost({ folder });
  const token = bearer(await open.login(await open.createUser()));
  const subscription = { event: newName("event"), endpoint: "https://shop.example/" };
  const made = await open.api.postJson("/consumer/subscription", subscription, token);
  const secret = String(readObject(made)["secret"]);
  const readable = () =>
    readdirSync(folder).filter((name) => {
      const bytes = readFileSync(join(folder, name));
      return ["PRIVATE KEY", "plain:", secret].some((text) => bytes.includes(text));
    });
  assert.ok(readable().length > 0, "then the test cannot tell");
  await open.server.kill(); // the log of a crash lies beside the file

  const env = { GATEPOST_SECRET_KEY: Buffer.alloc(32, 7).toString("base64") };
  const sealed = await startGatepost({ folder, env });
  t.after(async () => {
    await sealed.stop();
    rmSync(folder, { recursive: true });
  });
  assert.deepEqual(readable(), []);
});
