import type { HttpResponse } from "../base/http_message.ts";
import { newId } from "../base/id.ts";
import { malformed, Problem } from "../base/problem.ts";
import { sha256 } from "../base/secret.ts";
import { ConflictError, UnavailableError } from "../database/database.ts";
import type { Sql } from "../database/sql.ts";
import { problemResponse } from "../http/respond.ts";
import type { Services } from "../services.ts";
import { createAttempt, LEASE_MS } from "../store/idempotency.ts";
import type { Access, Context } from "./operation.ts";

/** What keeps a response: for the batch of all that its request stores. */
export type Keep = (response: HttpResponse) => readonly Sql[];

/** RFC 9651 §3.3.3: a string in quotes; its text alone is taken too. */
const KEY = /^(?:"((?:[ !#-[\]-~]|\\["\\]){1,255})"|([!#-~][ -~]{0,254}))$/;

/**
 * Carries out a request with this body once for each caller and Idempotency-Key
 * (draft-ietf-httpapi-idempotency-key-header): for a day a repeat gets what was kept, or Problem
 * 422 where it asks something else, and 409 while the first still runs. Kept is every response
 * below 500 but a refusal that says when to come again.
 *
 * @param run must store nothing without what keeps its response, unless a second run stores nothing
 * more; that throws TypeError for a stream, and for more than 256 KiB
 */
export async function answerOnce(
  { database, now }: Pick<Services, "database" | "now">,
  { request, caller }: Pick<Context<string, Access, unknown, unknown>, "request" | "caller">,
  body: () => string | Uint8Array,
  run: (keep: Keep) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const { method, path, query, headers: { "idempotency-key": given } } = request;
  if (given === undefined) return run(() => []);
  const [, quoted, key = quoted?.replace(/\\(.)/g, "$1")] = KEY.exec(String(given)) ?? [];
  if (key === undefined) throw malformed("An Idempotency-Key is 1 to 255 characters of ASCII.");
  const owner = caller ? [caller.sub, caller.clientId] : [request.address];
  const id = sha256(JSON.stringify([...owner, method, path, key]));
  const hash = sha256(`${query} ${sha256(body()).toString("hex")}`);
  const attempt = createAttempt(database, id, hash, newId("k", now()));
  const extend = (untilMs: number) => void attempt.extend(untilMs).catch(() => {}); // it will end
  let isKept = false;
  const keep: Keep = (response) => {
    const { body } = response;
    if (body instanceof ReadableStream || (body && Buffer.byteLength(body) > 262_144)) {
      throw new TypeError("What an Idempotency-Key keeps has 256 KiB at most, and no Response.");
    }
    isKept = true;
    const kept = { ...response, body: body && Buffer.from(body).toString("base64") };
    return [attempt.keep(JSON.stringify(kept))];
  };
  using _renewal = setInterval(() => extend(now() + LEASE_MS), LEASE_MS / 4).unref();
  try {
    if (await attempt.begin(now())) {
      const response = await run(keep).catch((error: unknown) => {
        const isProblem = error instanceof Problem && !("Retry-After" in error.headers);
        if (isProblem && error.status < 500) return problemResponse(error, request.id);
        throw error;
      });
      if (!isKept && response.status < 500) {
        await database.write(keep(response)).catch((error: unknown) => {
          if (!(error instanceof UnavailableError)) throw error;
          isKept = false; // it is sent all the same, as what it tells of is stored
        });
      }
      if (!isKept) extend(0);
      return response;
    }
  } catch (error) {
    extend(0); // a repeat need not wait
    const isOvertaken = (error instanceof Problem ? error.cause : error) instanceof ConflictError;
    if (!isOvertaken) throw error;
  }
  const known = await attempt.find();
  if (known?.isSame === 0) throw new Problem(422, "key_reused", "Another request had this key.");
  if (known?.response) {
    const { body: encoded, ...rest } = JSON.parse(known.response);
    const body = encoded && Buffer.from(encoded, "base64");
    // A problem, and nothing else, says in its header and body of which request it is.
    if (rest.headers?.["X-Request-Id"] === undefined) return { ...rest, body };
    return { ...rest, body: JSON.stringify({ ...JSON.parse(body), request_id: request.id }) };
  }
  const detail = "A request with this Idempotency-Key is still running.";
  throw new Problem(409, "key_in_use", detail, { headers: { "Retry-After": "1" } });
}
