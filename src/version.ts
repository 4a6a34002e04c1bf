import { readFileSync } from "node:fs";

/** The version of Gatepost: that of `package.json`, as in `0.1.0`. */
export const { version }: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
);

/**
 * The short commit that the running code was built from, as in `3f2a91c`.
 *
 * Source that runs without a build has none. `scripts/build.mjs` replaces this module in `dist`
 * with one that holds both values as literals, so that a package without git knows them too.
 */
export const revision: string = "unknown";
