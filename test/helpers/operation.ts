import type { Operation } from "../../src/api/operation.ts";

/** An operation that anyone may call and that responds with 204; `more` replaces members. */
export function sampleOperation(more: Partial<Operation> = {}): Operation {
  return {
    id: "sample",
    method: "GET",
    path: "/x",
    access: "public",
    summary: "X",
    responses: { 204: undefined },
    handle: () => Promise.resolve({ status: 204 }),
    ...more,
  };
}
