/** For how long a silent node is asked last, and for how long it is not followed as leader. */
const [ASKED_LAST_MS, NOT_FOLLOWED_MS] = [5_000, 1_000];
/** If no node answers, how long requests wait from the first failure on, and each one at least. */
const [PATIENCE_MS, MOMENT_MS] = [5_000, 500];

/** Chooses which node of a cluster is asked next: the leader, if it is known. */
export function createNodeChoice(nodes: readonly string[]) {
  let leader: string | undefined;
  let changes = 0;
  let turn = 0;
  /** Nodes that did not answer in time, and when. */
  const silent = new Map<string, number>();

  const wasSilent = (node: string, withinMs: number) =>
    performance.now() - (silent.get(node) ?? -Infinity) < withinMs;

  return {
    next(): string {
      if (leader !== undefined) return leader;
      turn++; // so that no failing node is asked again and again
      const inTurn = nodes.map((_, index) => nodes[(turn + index) % nodes.length] ?? "");
      return inTurn.find((node) => !wasSilent(node, ASKED_LAST_MS)) ?? inTurn[0] ?? "";
    },
    /** Notes that a node has not answered in time. */
    silenced: (node: string) => void silent.set(node, performance.now()),
    /** Notes that a connection has ended: its node may have restarted between two requests. */
    disconnected: () => void changes++,
    answered(node: string): void {
      if (node !== leader) changes++;
      leader = node;
    },
    /** Notes that a node has failed: the one that answers next may be a new leader. */
    failed(node: string): void {
      changes++;
      if (leader === node) leader = undefined;
    },
    /** Takes the leader that a node names; false if that leader was silent a moment ago. */
    follow(named: string): boolean {
      if (wasSilent(named, NOT_FOLLOWED_MS)) return false;
      leader = named;
      return true;
    },
    /** Rises whenever the leader may have changed. */
    changes: () => changes,
  };
}

/** Decides how long requests wait while no node answers: together, but one at a time longer. */
export function createWaitLimit() {
  /** Since when no request has been answered, and whether one waits longer than the others. */
  let lostAtMs: number | undefined;
  let isProbing = false;
  return {
    /** Until when a request waits that began at `startedMs`. */
    untilMs: (startedMs: number) =>
      Math.max((lostAtMs ?? Infinity) + PATIENCE_MS, startedMs + MOMENT_MS),
    /**
     * Runs an attempt; `isProbe` is true if it may use all its time. One at a time may, otherwise a
     * slow cluster would never be found again. `run` must not throw.
     */
    async attempt<Result extends { readonly kind: string }>(
      run: (isProbe: boolean) => Promise<Result>,
    ): Promise<Result> {
      const startedMs = performance.now();
      const isProbe = lostAtMs !== undefined && !isProbing;
      isProbing ||= isProbe;
      const result = await run(isProbe);
      if (isProbe) isProbing = false;
      lostAtMs = result.kind === "results" ? undefined : lostAtMs ?? startedMs;
      return result;
    },
  };
}
