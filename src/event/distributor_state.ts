/** The states of the distributor: off by configuration, stuck if it cannot do its work. */
export const DISTRIBUTOR_STATES = ["on", "off", "stuck"] as const;

export type DistributorState = (typeof DISTRIBUTOR_STATES)[number];
