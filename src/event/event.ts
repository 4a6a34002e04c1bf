import type { Check } from "../base/fields.ts";

/** An event that waits for, or has been through, its distribution. */
export interface Event {
  /** Starts with `e`. */
  readonly id: string;
  readonly name: string;
  /** The dispatched data as JSON, byte for byte what subscribers get. */
  readonly json: string;
  /** Where given, only this principal's subscriptions get it. */
  readonly subject: string | undefined;
  readonly createdAtMs: number;
}

/** An event that an endpoint module declares. */
export interface DeclaredEvent {
  readonly name: string;
  readonly description: string;
  /** All that are needed to subscribe to it. */
  readonly scope: readonly string[];
}

/** Events of the service itself; nobody else dispatches them, and only scope `backend` gets them. */
export const OWN_PREFIX = "gatepost.";

/** What an event's name is. */
export const EVENT_NAME = /^[A-Za-z0-9._:-]{1,128}$/;

/** What a principal's id is. */
export const PRINCIPAL_ID = /^[ua][0-9a-z]{8,63}$/;

/** Says what is wrong with an event's name. */
export const checkEventName: Check = (text) =>
  EVENT_NAME.test(text) ? undefined : "Must be 1 to 128 of A-Z a-z 0-9 . _ : -.";

/** Says why neither code nor people may dispatch an event of this name. */
export const checkDispatchableName: Check = (name) =>
  name.startsWith(OWN_PREFIX) ? `Must not start with ${OWN_PREFIX}` : checkEventName(name);

/** Whether code or people may dispatch an event of this name. */
export function isDispatchableName(name: string): boolean {
  return checkDispatchableName(name) === undefined;
}

/** Whether the text has the form of a principal's id, so that it can be an event's subject. */
export function isPrincipalId(text: unknown): text is string {
  return typeof text === "string" && PRINCIPAL_ID.test(text);
}
