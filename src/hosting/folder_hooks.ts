import { join, resolve, sep } from "node:path";
import type { LoadedEndpoint, Origin } from "./check_endpoint.ts";

/** One export of a module. */
export interface Export extends Origin {
  readonly value: unknown;
}

/** What a module may export for the endpoints of its folder and those below. */
const HOOKS = ["before", "onError"];

/** Whether an export is a hook by its name. */
export function isHook({ exportName }: Pick<Origin, "exportName">): boolean {
  return HOOKS.includes(exportName);
}

/** The folder of a module, with a separator at its end. */
export function folderOf({ file }: Origin): string {
  return join(resolve(file, ".."), sep);
}

/**
 * The hooks of an endpoint that these modules export: those of every folder that one of them is in,
 * so that one that is exported again elsewhere keeps its own.
 */
export function hooksOf(
  origins: readonly Origin[],
  hooks: readonly Export[],
): Pick<LoadedEndpoint, "before" | "onError"> {
  const applied = hooks
    .filter((hook) => origins.some(({ file }) => resolve(file).startsWith(folderOf(hook))))
    // The innermost first: of one that links lead to as well, the place furthest in counts.
    .sort((a, b) => folderOf(b).length - folderOf(a).length);
  const named = (name: string) =>
    [...new Set(applied.filter(({ exportName }) => exportName === name).map(({ value }) => value))]
      .flatMap((value) => typeof value === "function" ? [value.bind(undefined)] : []);
  return { before: named("before").reverse(), onError: named("onError") };
}
