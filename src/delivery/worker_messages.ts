import type { LogFields, LogLevel } from "../base/log.ts";
import type { Config } from "../config.ts";
import type { SelfTest } from "./egress.ts";

/** What the post's thread is started with, beside its port to the database. */
export type WorkerSettings = Pick<
  Config,
  | "databasePath"
  | "secretKeys"
  | "callbackAllow"
  | "callbackTimeoutMs"
  | "callbackConcurrency"
  | "callbackConcurrencyPerSubscription"
  | "resendDelaysMs"
  | "disableAfterMs"
>;

/** What is said to the post's thread. */
export type WorkerRequest =
  /** There may be work. */
  | { readonly kind: "wake" }
  /** Take over what other processes left, and look for work; `looked` is the answer. */
  | { readonly kind: "look" }
  /** Stop; the end of the thread is the answer. */
  | { readonly kind: "stop"; readonly graceMs: number };

/** What the post's thread says. */
export type WorkerEvent =
  /** What the address guard's test found, once after the start. */
  | { readonly kind: "started"; readonly test: SelfTest }
  | { readonly kind: "looked"; readonly fault?: string }
  | ({ readonly kind: "report" } & WorkerReport)
  | {
    readonly kind: "log";
    readonly level: LogLevel;
    readonly msg: string;
    readonly fields: LogFields;
  };

/** How the post does, a few times a second. */
export interface WorkerReport {
  /** How long ago it last looked for work without an error, in milliseconds. */
  readonly quietMs: number;
  /** Callbacks under way. */
  readonly inFlight: number;
  /** The code of what the service itself has lacked to send callbacks, within the last seconds. */
  readonly want: string | undefined;
  /** The attempts since the report before. */
  readonly attempts: readonly { readonly isSuccess: boolean; readonly ms: number }[];
}
