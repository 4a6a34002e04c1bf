import type { Log } from "../../src/base/log.ts";

/** A log that keeps nothing. */
export const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} };
