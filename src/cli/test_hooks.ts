import { registerHooks } from "node:module";
import { loadAsEsModules } from "../hosting/es_modules.ts";

// `gatepost test` loads this before the tests: gatepost/testing is that of this installation,
// whatever is installed beside them. The same module runs as source (.ts) and as built (.js).
const testing = new URL(`../testing${import.meta.filename.slice(-3)}`, import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "gatepost/testing"
      ? { url: testing, shortCircuit: true }
      : next(specifier, context),
});

// Endpoints are what they are for the server.
const folder = new URL(import.meta.url).searchParams.get("endpoints");
if (folder !== null) loadAsEsModules(folder);
