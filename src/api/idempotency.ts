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

/** Returns the statements that keep a response; they join the batch of what its request stores. */
export type Keep = (response: HttpResponse) => readonly Sql[];

/** A string in quotes (RFC 9651 §3.3.3); text without quotes is accepted too. */
export const KEY_PATTERN = /^(?:"((?:[ !#-[\]-~]|\\["\\]){1,255})"|([!#-~][ -~]{0,254}))$/;

/**
 * Carries out a request with this body once for each caller and Idempotency-Key
 * (draft-ietf-httpapi-idempotency-key-header). For a day a repeat gets the kept response, Problem
 * 422 if its content differs, or Problem 409 while the first request still runs. Every response
 * below 500 is kept, except a refusal with Retry-After.
 *
 * @param run must store its changes in one batch with the statements of `keep`, unless a second run
 * changes nothing more; `keep` throws TypeError for a stream, and for more than 256 KiB
 */
export async function respondOnce(
  { database, now }: Pick<Services, "database" | "now">,
  { request, caller }: Pick<Context<string, Access, unknown, unknown>, "request" | "caller">,
  body: () => string | Uint8Array,
  run: (keep: Keep) => Promise<HttpResponse>,
): Promise<HttpResponse> {
  const { method, path, query, headers: { "idempotency-key": given } } = request;
  if (given === undefined) return run(() => []);
  const [, quoted, key = quoted?.replace(/\\(.)/g, "$1")] = KEY_PATTERN.exec(String(given)) ?? [];
  if (key === undefined) throw malformed("The Idempotency-Key must be 1 to 255 ASCII characters.");
  const owner = caller ? [caller.sub, caller.clientId] : [request.address];
  const id = sha256(JSON.stringify([...owner, method, path, key]));
  const hash = sha256(`${query} ${sha256(body()).toString("hex")}`);
  const attempt = createAttempt(database, id, hash, newId("k", now()));
  const extend = (untilMs: number) => void attempt.extend(untilMs).catch(() => {}); // it expires
  let isKept = false;
  const keep: Keep = (response) => {
    const { body } = response;
    if (body instanceof ReadableStream || (body && Buffer.byteLength(body) > 262_144)) {
      throw new TypeError("With an Idempotency-Key, return at most 256 KiB, and no web Response.");
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
          isKept = false; // it is sent all the same: its changes are stored
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
  if (known?.isSame === 0) throw new Problem(422, "key_reused", "Another request used this key.");
  if (known?.response) {
    const { body: encoded, ...rest } = JSON.parse(known.response);
    const body = encoded && Buffer.from(encoded, "base64");
    // Only a kept problem has a request id, in header and body; the repeat gets its own id.
    if (rest.headers?.["X-Request-Id"] === undefined) return { ...rest, body };
    return { ...rest, body: JSON.stringify({ ...JSON.parse(body), request_id: request.id }) };
  }
  const detail = "A request with this Idempotency-Key is still running.";
  throw new Problem(409, "key_in_use", detail, { headers: { "Retry-After": "1" } });
}
