import { readFileSync } from "node:fs";

/** The version of Gatepost in `package.json`, such as `0.1.0`. */
export const { version }: { readonly version: string } = JSON.parse(
  readFileSync(new URL("../package.json", import.meta.url), "utf8"),
);

/**
 * The short hash of the commit that the running code was built from, such as `3f2a91c`.
 *
 * It is unknown where the source runs without a build. In `dist`, `scripts/build.mjs` replaces this
 * module by one that holds both values as literals, so that no git is needed at run time.
 */
export const revision: string = "unknown";
