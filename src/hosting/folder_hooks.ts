import { join, resolve, sep } from "node:path";
import type { LoadedEndpoint, Origin } from "./check_endpoint.ts";

/** One export of a module. */
export interface Export extends Origin {
  readonly value: unknown;
}

/** The exports of a module that apply to the endpoints of its folder and of those below. */
const HOOKS = ["before", "onError"];

/** Whether an export has the name of a hook. */
export function isHook({ exportName }: Pick<Origin, "exportName">): boolean {
  return HOOKS.includes(exportName);
}

/** Returns the folder of a module, with a separator at its end. */
export function folderOf({ file }: Origin): string {
  return join(resolve(file, ".."), sep);
}

/**
 * Returns the hooks of an endpoint that these modules export: those of every folder around any of
 * the modules. So an endpoint that is exported again elsewhere keeps its own hooks.
 */
export function hooksOf(
  origins: readonly Origin[],
  hooks: readonly Export[],
): Pick<LoadedEndpoint, "before" | "onError"> {
  const applied = hooks
    .filter((hook) => origins.some(({ file }) => resolve(file).startsWith(folderOf(hook))))
    // The innermost first. A hook that links also lead to counts at its innermost place.
    .sort((a, b) => folderOf(b).length - folderOf(a).length);
  const named = (name: string) =>
    [...new Set(applied.filter(({ exportName }) => exportName === name).map(({ value }) => value))]
      .flatMap((value) => typeof value === "function" ? [value.bind(undefined)] : []);
  return { before: named("before").reverse(), onError: named("onError") };
}
