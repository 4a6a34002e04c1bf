import assert from "node:assert/strict";
import { test } from "node:test";
import { openPlans } from "../helpers/query_plans.ts";

const { findScans, findSorts } = await openPlans();

test("findScans() finds scans, and findSorts() finds sorts", () => {
  assert.equal(findScans("SELECT * FROM deliveries WHERE attempt = 3").length, 1);
  assert.equal(findScans("SELECT count(data) FROM events").length, 1);
  assert.equal(findSorts("SELECT * FROM events ORDER BY createdAtMs").length, 1);
});
