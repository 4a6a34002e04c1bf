import { randomBytes } from "../base/secret.ts";

/** A new id for one request: 24 hexadecimal digits. */
export function newRequestId(): string {
  return randomBytes(12).toString("hex");
}

/** An id that came with the request, if it is sane enough to be logged and sent back. */
export function readRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && /^[A-Za-z0-9._:-]{1,128}$/.test(header) ? header : undefined;
}
