/**
 * Preloaded into a server under test (`--import`): sets its clock on the wall, in every thread, as
 * a file says, whose path is in TEST_CLOCK: milliseconds ahead of the true time.
 */
import { readFileSync } from "node:fs";

const trueNow = Date.now;
const path = process.env["TEST_CLOCK"] ?? "";
const read = () => Number(readFileSync(path, "utf8"));
let aheadMs = read();
Date.now = () => trueNow() + aheadMs;
setInterval(() => {
  aheadMs = read();
}, 20).unref();
