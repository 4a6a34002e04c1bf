import type { EgressResponse } from "./egress.ts";

/** The first bytes of a response, `bytes` and a few more; what comes behind is not waited for. */
export async function readStart({ body }: EgressResponse, bytes: number): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of body ?? []) { // leaving the loop cancels the rest
    chunks.push(chunk);
    length += chunk.length;
    if (length >= bytes) break;
  }
  return Buffer.concat(chunks);
}
