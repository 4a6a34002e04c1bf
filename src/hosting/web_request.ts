import { hasBody, type HttpRequest } from "../base/http_message.ts";
import { parseJson } from "../base/json.ts";
import { malformed } from "../base/problem.ts";
import { wrongType } from "../http/body.ts";

/** What a web Request is made of beside the request. */
export interface WebRequestParts {
  /** Of the base URL, whose path the request's begins with. */
  readonly origin: string;
  readonly maxBytes: number;
  /** Throws where the caller's token has ended meanwhile: a body may come slowly. */
  readonly authenticateAgain: () => Promise<unknown> | undefined;
}

/**
 * Returns the request as a web Request. Its body is what was read already, or else is read when it
 * is asked for, up to `maxBytes`; GET and HEAD have none (Fetch §5.4). As a form or as JSON that it
 * is not it is refused: that is no failure of the handler's.
 */
export function toWebRequest(
  request: HttpRequest,
  bytes: Buffer | undefined,
  { origin, maxBytes, authenticateAgain }: WebRequestParts,
): Request {
  const { method, path, query, signal } = request;
  const url = origin + path + (query === "" ? "" : `?${query}`);
  const headers = new Headers();
  for (const [name, value] of Object.entries(request.headers)) {
    for (const one of [value ?? []].flat()) headers.append(name, one);
  }
  const isEmpty = method === "GET" || method === "HEAD" || !hasBody(request);
  // A copy, since it is the handler's to change.
  const body = isEmpty ? null : bytes ? new Uint8Array(bytes) : new ReadableStream<Uint8Array>({
    async pull(controller) {
      const read = await request.readBody(maxBytes);
      await authenticateAgain();
      if (read.length > 0) controller.enqueue(read);
      controller.close();
    },
  }, { highWaterMark: 0 });
  const init = { method, headers, signal, duplex: "half" as const, body };
  return refusing(new Request(url, init));
}

/** The same, as a copy of it too. */
function refusing(web: Request): Request {
  return Object.assign(web, {
    formData: () => readForm(web),
    json: async () => parseJson(await web.bytes()), // as strictly as every other body
    clone: () => refusing(Request.prototype.clone.call(web)),
  });
}

async function readForm(web: Request): Promise<FormData> {
  const isRead = web.bodyUsed || web.body?.locked === true;
  if (!isRead && !FORM_TYPE.test(web.headers.get("content-type") ?? "")) {
    throw wrongType("Send the body as multipart/form-data.");
  }
  return Request.prototype.formData.call(web).catch((error: unknown) => {
    const isMalformed = !isRead && error instanceof TypeError;
    throw isMalformed ? malformed("The body is not a well-formed form.") : error;
  });
}

const FORM_TYPE = /^\s*(?:multipart\/form-data|application\/x-www-form-urlencoded)\s*(?:;|$)/i;
