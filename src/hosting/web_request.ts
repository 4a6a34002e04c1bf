import { hasBody, type HttpRequest } from "../base/http_message.ts";
import { parseJson } from "../base/json.ts";
import { malformed } from "../base/problem.ts";
import { wrongType } from "../http/body.ts";

/** The parts of a web Request beside the HTTP request. */
export interface WebRequestParts {
  /** The origin of the base URL. The path of a request includes the path of the base URL. */
  readonly origin: string;
  readonly maxBytes: number;
  /** Throws where the caller's token has ended meanwhile: a body may come slowly. */
  readonly authenticateAgain: () => Promise<unknown> | undefined;
}

/**
 * Returns the request as a web Request. Its body has the bytes that were read already, or is read
 * on demand, up to `maxBytes`; GET and HEAD have none (Fetch §5.4). Reading a malformed body as a
 * form or as JSON refuses the request: the handler has not failed.
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
  // A copy, since the handler may change it.
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

/** Makes formData() and json() refuse wrong bodies, in clones too. */
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
