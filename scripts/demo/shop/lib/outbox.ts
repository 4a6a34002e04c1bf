import { change, rows, transaction } from "./database.ts";

/** An event that is to be dispatched; `key` makes it one, however often that is tried. */
export interface Waiting {
  readonly id: number;
  readonly name: string;
  readonly key: string;
  /** JSON. */
  readonly data: string;
}

/** Notes an event in the transaction that it tells of. */
export function noteEvent(name: string, key: string, data: unknown): void {
  change(
    "INSERT INTO outbox (name, key, data) VALUES (?, ?, ?)",
    name,
    key,
    JSON.stringify(data),
  );
}

/** The events that wait longest. */
export function listWaiting(): readonly Waiting[] {
  return rows<Waiting>("SELECT id, name, key, data FROM outbox ORDER BY id LIMIT 1000");
}

/** Forgets events that Gatepost has stored. */
export function forgetEvents(stored: readonly Pick<Waiting, "name" | "key">[]): void {
  transaction(() => {
    for (const { name, key } of stored) {
      change("DELETE FROM outbox WHERE name = ? AND key = ?", name, key);
    }
  });
}
