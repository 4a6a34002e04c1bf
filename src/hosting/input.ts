import type { HttpRequest } from "../base/http_message.ts";
import { readAnyBody } from "../http/body.ts";
import type { Context } from "../mod.ts";
import type { LoadedEndpoint } from "./check.ts";

/** What a handler gets of a request, checked where the endpoint has schemas. */
interface Input extends Pick<Context<unknown>, "params" | "body"> {
  /** The body where it was read. */
  readonly bytes: Buffer | undefined;
}

/**
 * Reads what an endpoint takes. Throws Problem 400 that lists every error, 413 or 415.
 *
 * @param authenticateAgain throws where the caller's token has ended while the body came
 */
export async function readInput(
  _endpoint: LoadedEndpoint,
  request: HttpRequest,
  { params, maxBytes, maxFormBytes, authenticateAgain }: {
    readonly params: Context["params"];
    readonly maxBytes: number;
    readonly maxFormBytes: number;
    readonly authenticateAgain: () => Promise<void>;
  },
): Promise<Input> {
  const { value: body, bytes } = await readAnyBody(request, { maxBytes, maxFormBytes });
  if (bytes) await authenticateAgain();
  return { params, body, bytes };
}
