import { randomBytes } from "../base/secret.ts";

const LENGTH = 24;
let digits = "";

/** A new id for one request: 24 hexadecimal digits. Many are made at once, which costs less. */
export function newRequestId(): string {
  if (digits === "") digits = randomBytes(256).toString("hex");
  const id = digits.slice(0, LENGTH);
  digits = digits.length < 2 * LENGTH ? "" : digits.slice(LENGTH);
  return id;
}

/** An id that came with the request, if it is sane enough to be logged and sent back. */
export function readRequestId(header: string | string[] | undefined): string | undefined {
  return typeof header === "string" && /^[A-Za-z0-9._:-]{1,128}$/.test(header) ? header : undefined;
}
