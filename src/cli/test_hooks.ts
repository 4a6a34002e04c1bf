import { registerHooks } from "node:module";
import { loadAsEsModules } from "../hosting/es_modules.ts";

// `gatepost test` loads this before the tests, so that gatepost/testing comes from this
// installation and no other. The module runs as source (.ts) and as built (.js).
const testing = new URL(`../testing${import.meta.filename.slice(-3)}`, import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === "gatepost/testing"
      ? { url: testing, shortCircuit: true }
      : next(specifier, context),
});

// Endpoint modules are loaded as by the server.
const folder = new URL(import.meta.url).searchParams.get("endpoints");
if (folder !== null) loadAsEsModules(folder);
