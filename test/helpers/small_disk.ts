import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

/**
 * Mounts a disk of that size in memory until the end of the test. That needs root; returns
 * undefined if it fails.
 */
export function mountSmallDisk(t: TestContext, bytes: number) {
  const folder = mkdtempSync(join(tmpdir(), "gatepost-disk-"));
  const mount = (...options: string[]) =>
    spawnSync("mount", ["-t", "tmpfs", ...options, "none", folder]).status === 0;
  t.after(() => {
    spawnSync("umount", ["-l", folder]);
    rmSync(folder, { recursive: true });
  });
  if (!mount("-o", `size=${bytes}`)) return void t.diagnostic("not run: needs root, to mount");
  return { folder, resize: (size: number) => void mount("-o", `remount,size=${size}`) };
}
