import { change, rows, transaction } from "./database.ts";

/** An event to dispatch; however often it is dispatched, `key` makes it one event. */
export interface Waiting {
  readonly id: number;
  readonly name: string;
  readonly key: string;
  /** JSON. */
  readonly data: string;
}

/** Stores an event, in the transaction that the event reports. */
export function noteEvent(name: string, key: string, data: unknown): void {
  change(
    "INSERT INTO outbox (name, key, data) VALUES (?, ?, ?)",
    name,
    key,
    JSON.stringify(data),
  );
}

/** The events that have waited longest. */
export function listWaiting(): readonly Waiting[] {
  return rows<Waiting>("SELECT id, name, key, data FROM outbox ORDER BY id LIMIT 1000");
}

/** Deletes events that Gatepost has stored. */
export function forgetEvents(stored: readonly Pick<Waiting, "name" | "key">[]): void {
  transaction(() => {
    for (const { name, key } of stored) {
      change("DELETE FROM outbox WHERE name = ? AND key = ?", name, key);
    }
  });
}
