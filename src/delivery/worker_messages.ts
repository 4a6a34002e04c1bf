import type { Log, LogLevel } from "../base/log.ts";
import type { MessagePort } from "node:worker_threads";
import type { Config } from "../config.ts";
import type { ChangedDelivery } from "../event/delivery_record.ts";
import type { SelfTest } from "../outbound/egress.ts";

/** What the delivery worker needs of the configuration, and no more: it gets no passwords. */
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
  /** Below this URL are the receivers of this process. */
  readonly receivers: string | undefined;
  /** From `connect` of the database that the process has open. */
  readonly toDatabase: MessagePort | undefined;
}

export type WorkerRequest =
  /** There may be work. */
  | { readonly kind: "wake" }
  /** Take over what ended processes had claimed, and look for work; `looked` is the response. */
  | { readonly kind: "look" }
  /** Report from now on which deliveries change, or no more. */
  | { readonly kind: "watch"; readonly isWatched: boolean }
  /** Stop; the thread then ends. */
  | { readonly kind: "stop"; readonly graceMs: number };

export type WorkerEvent =
  /** What the address guard's test found, once after the start. */
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
  /** The code of what the service itself has lacked to send callbacks, within the last seconds. */
  readonly want: string | undefined;
  /** The attempts since the report before. */
  readonly attempts: readonly { readonly isSuccess: boolean; readonly ms: number }[];
  /** The deliveries of these attempts, while somebody watches. */
  readonly changed: readonly ChangedDelivery[];
}
