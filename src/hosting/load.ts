import { fileURLToPath, pathToFileURL } from "node:url";
import { findScopeConflicts } from "./catalogue.ts";
import {
  checkExport,
  type LoadedCronjob,
  type LoadedEndpoint,
  type LoadedScope,
  type Origin,
} from "./check.ts";
import { loadAsEsModules } from "./es_modules.ts";
import { findModules } from "./find_modules.ts";

/** Why one file or export cannot be served; `exportName` is undefined for the whole file. */
interface ModuleError {
  readonly file: string;
  readonly exportName: string | undefined;
  readonly reason: string;
}

/** Every reason, over all files, why the endpoint modules cannot be served. */
export class LoadError extends Error {
  override readonly name = "LoadError";
  readonly errors: readonly ModuleError[];

  constructor(errors: readonly ModuleError[]) {
    const lines = errors.map(({ file, exportName, reason }) =>
      exportName === undefined ? `${file}: ${reason}` : `${file}, export ${exportName}: ${reason}`
    );
    super(lines.join("\n"));
    this.errors = errors;
  }
}

/** What a folder of modules exports. */
export interface Hosted {
  readonly endpoints: LoadedEndpoint[];
  readonly cronjobs: LoadedCronjob[];
  readonly scopes: LoadedScope[];
}

type Members = Readonly<Record<string, unknown>>;

/**
 * Imports every module that `findModules` finds in `folder`, and returns the endpoints and cronjobs
 * that they export; without a folder, none. What two modules both export (one re-exports from the
 * other) counts once. Throws LoadError.
 *
 * @param timeoutMs how long one module may take to load; its top-level await might never end
 */
export async function loadEndpoints(
  folder: string | undefined,
  timeoutMs = 10_000,
): Promise<Hosted> {
  const errors: ModuleError[] = [];
  const hosted: Hosted = { endpoints: [], cronjobs: [], scopes: [] };
  if (folder === undefined) return hosted;
  const seen = new Set<unknown>();
  const onError = (file: string, reason: string): void => {
    errors.push({ file, exportName: undefined, reason });
  };
  for (const file of await findModules(folder, onError)) {
    // One after the other: what a module does while it loads happens in the same order each time.
    const loaded = await importModule(file, timeoutMs);
    if (typeof loaded === "string") {
      onError(file, loaded);
      continue;
    }
    for (const [exportName, value] of Object.entries(loaded)) {
      if (seen.has(value)) continue;
      seen.add(value);
      add(value, { file, exportName }, hosted, errors);
    }
  }
  errors.push(...findConflicts(hosted));
  if (errors.length > 0) throw new LoadError(errors);
  return hosted;
}

function add(value: unknown, origin: Origin, hosted: Hosted, errors: ModuleError[]): void {
  const checked = checkExport(value, origin);
  switch (checked?.kind) {
    case "endpoint":
      hosted.endpoints.push(checked.value);
      break;
    case "cronjob":
      hosted.cronjobs.push(checked.value);
      break;
    case "scopes":
      hosted.scopes.push(...checked.value);
      break;
    case "faulty":
      errors.push(...checked.reasons.map((reason) => ({ ...origin, reason })));
      break;
    default:
      checked satisfies undefined;
  }
}

/** What a module exports, or why it does not load. */
async function importModule(file: string, timeoutMs: number): Promise<Members | string> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<string>((resolve) => {
    timer = setTimeout(resolve, timeoutMs, `did not finish loading within ${timeoutMs} ms`);
  });
  try {
    loadAsEsModules(file);
    return await Promise.race([import(pathToFileURL(file).href), late]);
  } catch (error) {
    return describe(error);
  } finally {
    clearTimeout(timer);
  }
}

function findConflicts({ endpoints, cronjobs, scopes }: Hosted): ModuleError[] {
  return [
    ...findDuplicates(
      endpoints,
      ({ method, pattern }) => `${method} ${pattern.shape}`,
      ({ method, pattern }) => `${method} ${pattern.text} matches what`,
    ),
    ...findScopeConflicts(endpoints),
    ...findDuplicates(cronjobs, ({ name }) => name, ({ name }) => `name "${name}" is what`),
    ...findDuplicates(
      // Those that say the same count as one.
      [...new Map(scopes.map((item) => [`${item.grave} ${item.name} ${item.description}`, item]))
        .values()],
      ({ name }) => name,
      ({ name }) => `scopes["${name}"] differs from what`,
    ),
  ];
}

function findDuplicates<Item extends Origin>(
  items: readonly Item[],
  keyOf: (item: Item) => string,
  describeItem: (item: Item) => string,
): ModuleError[] {
  const first = new Map<string, Item>();
  return items.flatMap((item) => {
    const known = first.get(keyOf(item));
    if (known === undefined) {
      first.set(keyOf(item), item);
      return [];
    }
    const reason = `${describeItem(item)} ${known.exportName} of ${known.file} has already`;
    return [{ file: item.file, exportName: item.exportName, reason }];
  });
}

/** What went wrong, in a line or few, and where in the code if the engine says so. */
function describe(error: unknown): string {
  if (!(error instanceof Error)) return `threw ${String(error)} while loading`;
  const at = placeOf(error.stack ?? "");
  const hint = /package 'gatepost'/.test(error.message)
    ? '; write "import type", which vanishes when the module runs'
    : "";
  return `${error.name}: ${error.message}${hint}${at === undefined ? "" : ` (${at})`}`;
}

/** `file:line` at the head of a syntax error's stack, or the first frame in a file. */
function placeOf(stack: string): string | undefined {
  const head = /^(?:file:\/\/)?(\S.*:\d+)\n/.exec(stack);
  if (head !== null) return head[1];
  const frames = stack.matchAll(/^ +at (?:.*\()?(file:\/\/.+):(\d+):\d+\)?$/gm);
  const [, url = import.meta.url, line] = frames.next().value ?? [];
  // Without a frame of its own the first is the import here, which helps nobody.
  return url === import.meta.url ? undefined : `${fileURLToPath(url)}:${line}`;
}
