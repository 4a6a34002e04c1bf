// An import would read every export of node:http, and one of them, WebSocket, loads all of fetch.
const { STATUS_CODES } = process.getBuiltinModule("node:http");

/** The short name of an HTTP status (RFC 9110 §15), as in "Not Found"; "Error" without one. */
export function statusText(status: number): string {
  return STATUS_CODES[status] ?? "Error";
}
