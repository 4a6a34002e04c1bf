/**
 * The types of endpoint modules: the code that Gatepost hosts behind its tokens. Import from here
 * with `import type`: it vanishes when the module runs, so a module needs neither this package
 * installed beside it nor a `package.json`.
 */

export type * from "./mod/context.ts";
export type * from "./mod/define.ts";
export type * from "./mod/endpoint.ts";
export type * from "./mod/schema.ts";
