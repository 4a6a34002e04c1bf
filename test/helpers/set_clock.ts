/**
 * Preloaded into a server under test (`--import`): sets its clock on the wall, in every thread, as
 * a file says, whose path is in TEST_CLOCK: milliseconds ahead of the true time.
 */
import { readFileSync } from "node:fs";

const trueNow = Date.now;
const path = process.env["TEST_CLOCK"] ?? "";
let aheadMs = 0;
Date.now = () => trueNow() + aheadMs;
setInterval(() => {
  aheadMs = Number(readFileSync(path, "utf8"));
}, 20).unref();
