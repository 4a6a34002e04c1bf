import type { DefineEndpoint } from "gatepost";

/** Gives a handler the types of its endpoint's schemas, events and scope. */
export const endpoint: DefineEndpoint = (given) => given;
