/**
 * The types of endpoint modules: the code that Gatepost hosts behind its tokens.
 *
 * A module is a `.ts`, `.mts`, `.js` or `.mjs` file in the folder GATEPOST_ENDPOINTS. Every plain
 * object that it exports, alone or in a list, with the fields of an {@link Endpoint} or
 * a {@link Cronjob} is taken, and so are `scopes` and, for its folder, `before` and `onError`;
 * other exports are left alone, and so are names that start with a dot, `node_modules`,
 * declarations (`.d.ts`) and tests (`.test.ts`, `.spec.ts`). Import from here with `import type`:
 * it vanishes when the module runs, so a module needs neither this package installed beside it nor
 * a `package.json`.
 */

export type * from "./mod/context.ts";
export type * from "./mod/define.ts";
export type * from "./mod/endpoint.ts";
export type * from "./mod/schema.ts";
