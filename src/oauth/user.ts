import { type Check, openFields } from "../base/fields.ts";
import { PASSWORD_BYTES } from "../base/password.ts";
import { CONSUMER_SCOPE } from "./principal.ts";
import { isScopeName } from "./scope.ts";

/** Someone who logs in with a name and a password. */
export interface User {
  /** Starts with `u`. */
  readonly id: string;
  readonly username: string;
  readonly scopes: readonly string[];
  readonly status: "active" | "disabled";
  readonly createdAtMs: number;
  /** Grants and sessions made then or before have ended. */
  readonly notBeforeMs: number;
}

/** What makes a user. */
export interface NewUser {
  readonly username: string;
  readonly password: string;
  readonly scopes: readonly string[];
}

/** What of a user may change; a member that is absent stays as it is. */
export interface UserChange {
  readonly password?: string | undefined;
  readonly scopes?: readonly string[] | undefined;
  readonly status?: "active" | "disabled" | undefined;
}

/** What a user name is. */
export const USERNAME = /^[A-Za-z0-9._@+-]{1,64}$/;

/** Says what is wrong with a user name: 1 to 64 of `A-Za-z0-9._@+-`. */
export const checkUsername: Check = (text) =>
  USERNAME.test(text) ? undefined : "Must be 1 to 64 of A-Z a-z 0-9 . _ @ + -.";

/** Says what is wrong with a password: 8 to 1,024 bytes of UTF-8. */
export const checkPassword: Check = (text) => {
  const bytes = Buffer.byteLength(text);
  const { min, max } = PASSWORD_BYTES;
  return bytes >= min && bytes <= max ? undefined : `Must be ${min} to ${max} bytes long.`;
};

/** Says what is wrong with a scope name (RFC 6749 §3.3, without the comma). */
export const checkScopeName: Check = (text) =>
  isScopeName(text)
    ? undefined
    : "Must be 1 to 64 printable ASCII characters without space, comma, quote or backslash.";

/** Reads the JSON that makes a user; throws Problem 400 with every fault. */
export function parseNewUser(value: unknown): NewUser {
  const fields = openFields(value);
  const user = {
    username: fields.requiredText("username", checkUsername),
    password: fields.requiredText("password", checkPassword),
    scopes: fields.list("scopes", checkScopeName) ?? [CONSUMER_SCOPE],
  };
  fields.finish("user");
  return user;
}

/** Reads the JSON that changes a user; throws Problem 400 with every fault. */
export function parseUserChange(value: unknown): UserChange {
  const fields = openFields(value);
  const change = {
    password: fields.text("password", checkPassword),
    scopes: fields.list("scopes", checkScopeName),
    status: fields.word("status", ["active", "disabled"]),
  };
  fields.finish("change of a user");
  return change;
}
