/** How the distributor does: off by configuration, or stuck when it cannot do its work. */
export const DISTRIBUTOR_STATES = ["on", "off", "stuck"] as const;

export type DistributorState = (typeof DISTRIBUTOR_STATES)[number];
