// The layers of src: what each folder may use. check_layers.ts checks it.

/** A folder below src, or a file in src itself, and what it may import besides itself. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[]>> = {
  version: [],
  base: ["version"],
  oauth: ["base"],
  event: ["base"],
  config_kinds: ["base", "oauth"], // as config
  config: ["base", "oauth", "config_kinds"],
  database: ["base"],
  store: ["base", "oauth", "event", "database"],
  outbound: ["version", "base", "oauth"],
  mod: ["base", "oauth"],
  http: ["version", "base", "oauth"],
  services: "base oauth event config database store outbound api app".split(" "), // all as types
  api: "version base oauth event config database store outbound http services".split(" "),
  hosting: "version base oauth event database store mod http api services".split(" "),
  delivery: "version base oauth event config database store outbound services".split(" "),
  job: "version base oauth event config database store services".split(" "),
  app: ("version base oauth event config database store outbound mod http api hosting delivery " +
    "job services").split(" "),
  console: ["base", "oauth", "event", "api"], // all as types: it runs in browsers
  testing: "version base oauth event config database store mod http api hosting app".split(" "),
  server: "version base database config app".split(" "),
  cli: ("version base oauth event config database store outbound mod http api hosting delivery " +
    "job app services").split(" "),
};

/** What may be imported as types alone, never as values. */
export const TYPES_ONLY = ["mod", "services"];

/**
 * The `node:` modules that a path may touch (with what lies below them: `fs` has `fs/promises`);
 * the longest path that fits decides. Extend a line only with a reason why that folder, and no
 * other, is the place for it.
 */
export const MAY_TOUCH: Readonly<Record<string, readonly string[]>> = {
  version: ["fs"],
  mod: [],
  config: ["fs"], // secrets that are given as files
  app: ["events", "fs", "http", "path", "perf_hooks", "util"],
  server: ["os"],
  testing: [],
  cli: ["fs", "path", "readline", "util"],
  "cli/dev.ts": ["child_process", "fs", "inspector", "path"], // the server that it restarts
  "cli/test_hooks.ts": ["module"],
  "base/": ["crypto", "http", "net", "util"], // http: its status names and types
  "base/quick_import.ts": ["module", "path"],
  "base/start_memory.ts": ["perf_hooks", "v8", "vm"],
  "oauth/": [],
  "event/": ["crypto"],
  "database/": ["fs", "path", "sqlite", "url", "worker_threads"],
  // Requests to the nodes of a cluster, and copies from and to them.
  "database/rqlite_": "events fs http https net path sqlite stream timers".split(" "),
  "store/": [],
  "http/": ["net"],
  "http/node_": ["http", "net", "stream"],
  "api/": [],
  "hosting/": ["fs", "module", "path", "url"],
  "hosting/load_failure.ts": ["url", "vm"], // vm says where a syntax error is
  // os: whether this machine has a network; fs: the hosts file
  "outbound/": ["dns", "fs", "net", "os", "timers"],
  "delivery/": ["timers", "worker_threads"],
  "job/": [],
};

export const ENVIRONMENT_IN = ["server.ts", "cli.ts"];
export const FETCH_IN = ["outbound/egress.ts", "console/"];
// The address guard tests itself.
export const LISTEN_IN = ["http/node_http.ts", "outbound/egress.ts"];
export const SQL_IN = ["database/", "store/"];
export const HTML_IN = ["api/pages", "base/html.ts"];
export const COMPUTED_IMPORT_IN = ["hosting/"];
