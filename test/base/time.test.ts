import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parseShape } from "../../src/base/shape.ts";
import { TIME, toTime } from "../../src/base/time.ts";
import { pointersOf } from "../helpers/problem.ts";

describe("TIME accepts (RFC 3339 §5.6)", () => {
  for (const time of [
    "2030-01-31T12:00:00Z",
    "2030-01-31t12:00:00z",
    "2030-01-31T23:59:59.123456789Z",
    "2030-01-31T23:59:59.9999999999999999999Z",
    "2030-01-31T12:00:00+05:30",
    "2028-02-29T00:00:00Z",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59.999Z",
  ]) {
    test(time, () => assert.equal(parseShape(TIME, time, "body"), time));
  }
});

describe("TIME refuses", () => {
  for (const time of [
    "",
    "2030-01-31",
    "2030-01-31 12:00:00Z",
    "2030-01-31T12:00:00",
    "2030-01-31T12:00Z",
    "2030-1-31T12:00:00Z",
    "2030-01-31T12:00:00.Z",
    "2030-01-31T12:00:00+24:00",
    "2030-01-31T24:00:00Z",
    "2030-01-31T12:60:00Z",
    "2030-13-01T00:00:00Z",
    "2030-00-01T00:00:00Z",
    "2030-01-32T00:00:00Z",
    "1998-12-31T23:59:60Z", // a leap second, which Date does not support
    "2030-02-29T00:00:00Z", // not in that year (RFC 3339 §5.7)
    "2030-02-30T00:00:00Z",
    "2030-04-31T00:00:00Z",
    "9999-12-31T23:59:59-01:00", // in UTC the year is 10000 or -1, not possible in RFC 3339
    "0000-01-01T00:00:00+01:00",
    "\n2030-01-31T12:00:00Z",
    "2030-01-31T12:00:00Z\n",
  ]) {
    const check = () => parseShape(TIME, time, "body");
    test(JSON.stringify(time), () => assert.deepEqual(pointersOf(check), [""]));
  }
});

test("toTime() writes UTC with milliseconds", () => {
  assert.equal(toTime(Date.UTC(2030, 0, 31, 12)), "2030-01-31T12:00:00.000Z");
});
