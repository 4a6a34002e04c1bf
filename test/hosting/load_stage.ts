import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { resolve } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { LoadError, loadEndpoints } from "../../src/hosting/load.ts";

export const FIXTURES = resolve(import.meta.dirname, "../fixtures/endpoints");
const LOAD = resolve(import.meta.dirname, "../../src/hosting/load.ts");

/** The errors of a folder as `file, export name: reason`, paths relative to it. */
export async function errorsOf(folder: string, timeoutMs = 10_000): Promise<string[]> {
  try {
    await loadEndpoints(folder, timeoutMs);
  } catch (error) {
    assert.ok(error instanceof LoadError, String(error));
    // A reason may have several lines.
    return error.message.split(new RegExp(`\n(?=${folder}/)`))
      .map((each) => each.replaceAll(`${folder}/`, ""));
  }
  return [];
}

export const endpoint = (fields: string): string =>
  `export const x = { method: "GET", path: "/x", scope: "s", handle() {}, ${fields} };`;
export const cronjob = (fields: string): string =>
  `export const x = { name: "x", every: "5m", run() {}, ${fields} };`;

/** Loads a folder in a process of its own: exit code, paths and stderr. */
export async function loadApart(
  folder: string,
  flags: readonly string[] = [],
): Promise<[code: unknown, out: string, err: string]> {
  const script = `const { loadEndpoints } = await import("${pathToFileURL(LOAD).href}");
    const { endpoints } = await loadEndpoints(${JSON.stringify(folder)});
    console.log(endpoints.map(({ pattern }) => pattern.text).join());`;
  const child = spawn(process.execPath, [...flags, "--input-type=module", "--eval", script], {
    cwd: folder,
    env: {},
  });
  const closed = once(child, "close");
  const [out, err] = await Promise.all([text(child.stdout), text(child.stderr)]);
  const [code] = await closed;
  return [code, out.trim(), err];
}
