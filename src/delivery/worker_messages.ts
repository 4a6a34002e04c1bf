import type { Log, LogLevel } from "../base/log.ts";
import type { MessagePort } from "node:worker_threads";
import type { Config } from "../config.ts";
import type { ChangedDelivery } from "../event/delivery_record.ts";
import type { SelfTest } from "../outbound/egress.ts";

/** The settings that the delivery worker needs. It gets no others, and so no passwords. */
export const WORKER_SETTINGS = [
  "database",
  "databaseCredentials",
  "secretKeys",
  "callbackAllow",
  "callbackTimeoutMs",
  "callbackConcurrency",
  "callbackConcurrencyPerSubscription",
  "resendDelaysMs",
  "disableAfterMs",
] as const satisfies readonly (keyof Config)[];

export type WorkerSettings = Pick<Config, (typeof WORKER_SETTINGS)[number]>;

export interface WorkerStart {
  /** The name of this process, which its claims carry. */
  readonly name: string;
  readonly settings: WorkerSettings;
  /** The URL below which the receivers of this process are. */
  readonly receivers: string | undefined;
  /** From `connect` of the database that the process has open. */
  readonly toDatabase: MessagePort | undefined;
}

export type WorkerRequest =
  /** There may be work. */
  | { readonly kind: "wake" }
  /** Take over the claims of ended processes, and look for work; `looked` is the response. */
  | { readonly kind: "look" }
  /** Begin or stop to report which deliveries change. */
  | { readonly kind: "watch"; readonly isWatched: boolean }
  /** Stop, and end the thread. */
  | { readonly kind: "stop"; readonly graceMs: number };

export type WorkerEvent =
  /** The result of the address guard's self-test, once after the start. */
  | { readonly kind: "started"; readonly test: SelfTest }
  | { readonly kind: "looked"; readonly error?: string }
  | ({ readonly kind: "report" } & WorkerReport)
  | { readonly kind: "log"; readonly level: LogLevel; readonly line: Parameters<Log[LogLevel]> };

/** The state of the worker, sent a few times a second. */
export interface WorkerReport {
  /** How long ago it last looked for work without an error, in milliseconds. */
  readonly quietMs: number;
  /** Callbacks under way. */
  readonly inFlight: number;
  /** The error code of the shortage that has kept callbacks back within the last seconds. */
  readonly want: string | undefined;
  /** The attempts since the last report. */
  readonly attempts: readonly { readonly isSuccess: boolean; readonly ms: number }[];
  /** The deliveries of these attempts, if somebody watches. */
  readonly changed: readonly ChangedDelivery[];
}
