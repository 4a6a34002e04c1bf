import { isPlainObject } from "../base/plain_object.ts";
import type { Export } from "./folder_hooks.ts";

const MAX_DEPTH = 2;

/** What has the members of an endpoint or a cronjob: an export that is none, or what is in it. */
export function findLookalikes(exported: Export, depth = 0): readonly Export[] {
  const { value, file, exportName } = exported;
  if (typeof value !== "object" || value === null) return [];
  // Members are not read: a getter may do anything.
  const countIn = (...names: string[]) => names.filter((name) => name in value).length;
  const isEndpoint = "handle" in value || countIn("method", "path", "scope", "public") > 1;
  if (isEndpoint || countIn("name", "every", "run") > 1) return [exported];
  if (depth === MAX_DEPTH || !(isPlainObject(value) || Array.isArray(value))) return [];
  return Object.entries(Object.getOwnPropertyDescriptors(value)).flatMap(([name, { value }]) =>
    findLookalikes({ value, file, exportName: `${exportName}.${name}` }, depth + 1)
  );
}
