/**
 * How the distributor does: off by configuration, starting while the thread of a new process loads,
 * or stuck when it cannot do its work.
 */
export const DISTRIBUTOR_STATES = ["on", "off", "starting", "stuck"] as const;

export type DistributorState = (typeof DISTRIBUTOR_STATES)[number];
