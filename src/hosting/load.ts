import { realpathSync } from "node:fs";
import { dirname } from "node:path";
import { pathToFileURL } from "node:url";
import { isPlainObject, type Members } from "../base/plain_object.ts";
import { checkExport, type Hosted } from "./check.ts";
import { errorLine } from "./check_data.ts";
import type { Origin } from "./check_endpoint.ts";
import { loadAsEsModules } from "./es_modules.ts";
import { findModules } from "./find_modules.ts";
import { type Export, folderOf, hooksOf, isHook } from "./folder_hooks.ts";
import { describeLoadFailure } from "./load_failure.ts";

/** Every reason, over all files, why the endpoint modules cannot be served, one a line. */
export class LoadError extends Error {
  override readonly name = "LoadError";
}

/**
 * Imports every module that `findModules` finds in `folder`, and returns the exports to be served;
 * without a folder, none. An export of two modules (one re-exports from the other) counts once,
 * with the hooks of both folders. Throws LoadError.
 *
 * @param timeoutMs how long one module may take to load; its top-level await might never end
 */
export async function loadEndpoints(
  folder: string | undefined,
  timeoutMs = 10_000,
): Promise<Hosted> {
  const errors: string[] = [];
  const hosted: Hosted = { endpoints: [], cronjobs: [], scopes: [], passedOver: [] };
  if (folder === undefined) return hosted;
  const onError = (file: string, reason: string): void => {
    errors.push(`${file}: ${reason}`);
  };
  const onUnreadable = (path: string, why: string) => onError(path, `cannot be read: ${why}`);
  const files = await findModules(folder, onUnreadable, (file) => hosted.passedOver.push({ file }));
  // Before the first import, since each module may import any other.
  const folders = files.map((file) => dirname(realpathSync(file)));
  if (files.length > 0) folders.unshift(realpathSync(folder));
  folders.forEach(loadAsEsModules);
  const loading = new Set<string>();
  using _exit = watchExit(loading);
  const loads: Promise<Export[]>[] = [];
  for (const file of files) {
    loading.add(file);
    const load = importModule(file, timeoutMs).then((loaded) => {
      loading.delete(file);
      if (typeof loaded !== "string") return exportsOf(file, loaded);
      onError(file, loaded);
      return [];
    });
    loads.push(load);
    // One after the other, so that what modules do while they load has a fixed order. After an
    // error all together, since each may hang on the same thing.
    if (errors.length === 0) await load;
  }
  const exported = (await Promise.all(loads)).flat();
  const hooks = exported.filter(isHook);
  errors.push(...findHookErrors(hooks));
  const values = Map.groupBy(exported.filter((each) => !isHook(each)), ({ value }) => value);
  for (const [value, places] of values) {
    const [first] = places;
    if (!first) continue;
    const origin = { file: first.file, exportName: first.exportName };
    try {
      const found = checkExport(value, origin, hooksOf(places, hooks), hosted);
      errors.push(...(found ?? []).map((error) => exportError(origin, errorLine(error))));
      // A value that is also exported by itself was judged there.
      const isNew = (each: Export) => each === first || !values.has(each.value);
      if (!found) hosted.passedOver.push(...findLookalikes(first).filter(isNew));
    } catch (error) { // thrown by a getter
      errors.push(exportError(origin, describeLoadFailure(error)));
    }
  }
  errors.push(...findConflicts(hosted));
  if (errors.length > 0) throw new LoadError(errors.join("\n"));
  return hosted;
}

const MAX_DEPTH = 2;

/** Returns what has members of an endpoint or a cronjob: an export, or values inside it. */
function findLookalikes(exported: Export, depth = 0): readonly Export[] {
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

/** Returns the exports of a module; each item of a list is one export. */
function exportsOf(file: string, members: Members): Export[] {
  return Object.entries(members).flatMap(([exportName, value]) =>
    Array.isArray(value) && !isHook({ exportName })
      ? value.map((item, index) => ({ file, exportName: `${exportName}[${index}]`, value: item }))
      : [{ file, exportName, value }]
  );
}

function exportError({ file, exportName }: Origin, reason: string): string {
  return `${file}, export ${exportName}: ${reason}`;
}

/** Returns what a module exports, or why it does not load. */
async function importModule(file: string, timeoutMs: number): Promise<Members | string> {
  const { promise: late, resolve } = Promise.withResolvers<string>();
  using _timer = setTimeout(resolve, timeoutMs, `its top-level await took over ${timeoutMs} ms`);
  try {
    return await Promise.race([import(pathToFileURL(file).href), late]);
  } catch (error) {
    return describeLoadFailure(error);
  }
}

/** Names the loading modules if the process ends meanwhile, which would look like a success. */
function watchExit(loading: ReadonlySet<string>): Disposable {
  const onExit = (): void => {
    process.exitCode = 1;
    for (const file of loading) {
      process.stderr.write(`${file}: the process ended while this was loading\n`);
    }
  };
  process.on("exit", onExit);
  return { [Symbol.dispose]: () => process.off("exit", onExit) };
}

function findHookErrors(hooks: readonly Export[]): string[] {
  return [
    ...hooks.filter(({ value }) => typeof value !== "function")
      .map((hook) => exportError(hook, "must be a function")),
    ...findClashes(
      hooks,
      (hook) => `${hook.exportName} ${folderOf(hook)}`,
      (_hook, known) => `its folder has ${known} already`,
      ({ value }) => value,
    ),
  ];
}

function findConflicts({ endpoints, cronjobs, scopes }: Hosted): string[] {
  const events = endpoints.flatMap(({ emits, ...origin }) =>
    emits.map(({ name, scope }) => ({ ...origin, name, scope: scope.toSorted().join(" ") }))
  );
  return [
    ...findClashes(
      endpoints,
      ({ method, pattern }) => `${method} ${pattern.shape}`,
      ({ method, pattern }, known) => `${method} ${pattern.text} matches what ${known} has already`,
    ),
    ...findClashes(
      events,
      ({ name }) => name,
      // Otherwise the order of files would decide which scope counts.
      ({ name }, known) => `emits["${name}"] has another scope than in ${known}`,
      ({ scope }) => scope,
    ),
    ...findClashes(
      cronjobs,
      ({ name }) => name,
      ({ name }, known) => `name "${name}" is already used by ${known}`,
    ),
    ...findClashes(
      scopes,
      ({ name }) => name,
      ({ name }, known) => `scopes["${name}"] differs from what ${known} has already`,
      ({ grave, description }) => `${grave} ${description}`,
    ),
  ];
}

/** Returns an error for each item with an earlier item's key, unless their contents are equal. */
function findClashes<Item extends Origin>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  describeClash: (item: Item, known: string) => string,
  contentOf: (item: Item) => unknown = (item) => item,
): string[] {
  const first = new Map<string, Item>();
  return items.flatMap((item) => {
    const known = first.getOrInsert(keyOf(item), item);
    if (contentOf(known) === contentOf(item)) return [];
    return [exportError(item, describeClash(item, `${known.exportName} of ${known.file}`))];
  });
}
