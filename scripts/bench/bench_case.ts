/** Something to measure. */
export interface BenchCase {
  /** The name for `--only`. */
  readonly name: string;
  measure(stage: Stage): Promise<readonly Finding[]>;
}

/** What a case works with. */
export interface Stage {
  /** How long one side's turn is. */
  readonly turnMs: number;
  /** How often each side has its turn. */
  readonly rounds: number;
  /** Flags of Node for Gatepost, with which it writes a profile. */
  readonly nodeFlags: readonly string[];
  /** A folder with what npm installed for the comparison with peers; none without `--peers`. */
  readonly peers: string | undefined;
  /** Returns the path of a folder that does not exist yet. */
  newFolder(): string;
  /** Prints a line of progress. */
  say(line: string): void;
}

/** One line of the result. */
export interface Finding {
  readonly what: string;
  readonly unit: string;
  readonly gatepost: number;
  /** What the figure is compared with; undefined if with nothing. */
  readonly reference?: { readonly name: string; readonly value: number };
  /** Gatepost's figure as a multiple of the reference's. */
  readonly ratio?: number;
  /** CPU time of one operation in microseconds, all threads of the server. */
  readonly cpuMicros?: { readonly gatepost: number; readonly reference: number };
  /** The latency of Gatepost's responses, in milliseconds. */
  readonly latencyMs?: { readonly p50: number; readonly p99: number };
  /** The target of the ratio, or of the figure without a ratio; undefined if there is none. */
  readonly target?: Target;
}

export interface Target {
  readonly kind: "at least" | "at most";
  readonly value: number;
}

/** How well a finding meets its target: 1 is just met, more is better; undefined without one. */
export function scoreOf({ gatepost, ratio, target }: Finding): number | undefined {
  if (target === undefined) return undefined;
  const value = ratio ?? gatepost;
  return target.kind === "at least" ? value / target.value : target.value / value;
}
