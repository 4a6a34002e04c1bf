/** A node that was silent is asked last for so long; one that is said to lead, for a moment. */
const [ASKED_LAST_MS, NOT_FOLLOWED_MS] = [5_000, 1_000];
/** How long all wait together where nobody leads; who comes later waits for a moment. */
const [PATIENCE_MS, MOMENT_MS] = [5_000, 500];

/** Makes the choice which node of a cluster is asked next: the leader, where it is known. */
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
      turn++; // so that none that fails is asked again and again
      const inTurn = nodes.map((_, index) => nodes[(turn + index) % nodes.length] ?? "");
      return inTurn.find((node) => !wasSilent(node, ASKED_LAST_MS)) ?? inTurn[0] ?? "";
    },
    /** It has not answered in time. */
    silenced: (node: string) => void silent.set(node, performance.now()),
    /** A connection has ended: the node may have been started again, between two requests. */
    disconnected: () => void changes++,
    answered(node: string): void {
      if (node !== leader) changes++;
      leader = node;
    },
    /** It has not: whoever answers next may lead since a moment ago. */
    failed(node: string): void {
      changes++;
      if (leader === node) leader = undefined;
    },
    /** Takes what another says of who leads; false for one that was silent a moment ago. */
    follow(named: string): boolean {
      if (wasSilent(named, NOT_FOLLOWED_MS)) return false;
      leader = named;
      return true;
    },
    /** Rises whenever the leader may have changed. */
    changes: () => changes,
  };
}

/** Makes the time that requests wait where no node answers: each as long as it may, or together. */
export function createPatience() {
  /** Since when nothing has been answered, and whether a request waits longer than the others. */
  let lostAtMs: number | undefined;
  let isProbing = false;
  return {
    /** Until when one waits that began then. */
    untilMs: (startedMs: number) =>
      Math.max((lostAtMs ?? Infinity) + PATIENCE_MS, startedMs + MOMENT_MS),
    /**
     * Makes an attempt, which is told whether it has all its time: one at a time has, or a cluster
     * that is slow would never be found again. It does not throw.
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
