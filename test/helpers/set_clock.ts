/**
 * Preloaded into a server under test (`--import`): sets its wall clock in every thread. The file
 * that TEST_CLOCK names has the milliseconds that the clock is ahead of the true time.
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
