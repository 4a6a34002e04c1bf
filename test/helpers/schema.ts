import { readFileSync } from "node:fs";

/** Version 1 of the schema, as 0.1.0 made it. */
export const SCHEMA_OF_0_1_0 = readFileSync(
  new URL("../fixtures/schema-0.1.0.sql", import.meta.url),
  "utf8",
);
