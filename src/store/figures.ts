import { type Database, limitTo, OutcomeUnknownError } from "../database/database.ts";
import { sql, type Sql } from "../database/sql.ts";
import { countOne, type Figures, NO_FIGURES, STEPS } from "../event/figures.ts";

/** Counts what happens, by the minute and by the hour. */
export type FigureCounter = ReturnType<typeof createFigureCounter>;

/** How many minutes are kept in memory at most while the database refuses writes. */
const KEPT_MINUTES = 60;
/** The most intervals in a response, which the request thread writes: 41 days of hours. */
const MAX_INTERVALS = 1_000;

const STEP_LIST = JSON.stringify(Object.values(STEPS).map(({ ms }) => ms));
const SUMS: Sql = {
  sql: NO_FIGURES.map((_, place) => `figures.counts ->> ${place} + excluded.counts ->> ${place}`)
    .join(", "),
  params: [],
};

/**
 * Makes the counter. It counts in memory; `flush` stores what was counted since the last flush. Any
 * number of processes add to the same figures. A killed process loses what is not stored.
 */
export function createFigureCounter(database: Pick<Database, "write">, now: () => number) {
  let unstored: { readonly atMs: number; readonly counts: Map<string, number[]> }[] = [];

  return {
    /** Counts one outcome for a key; `isFinal`: it is bad, and nothing follows. */
    add(key: string, isOk: boolean, isFinal = false, durationMs?: number): void {
      const nowMs = now();
      const atMs = nowMs - nowMs % STEPS.minute.ms;
      let last = unstored.at(-1);
      if (last?.atMs !== atMs) unstored.push(last = { atMs, counts: new Map() });
      const figures = last.counts.getOrInsertComputed(key, () => [...NO_FIGURES]);
      countOne(figures, isOk, isFinal, durationMs);
    },
    /** Stores what has been counted since the last call, as one batch. */
    async flush(): Promise<void> {
      const sent = unstored;
      if (sent.length === 0) return;
      unstored = [];
      const rows = sent.flatMap(({ atMs, counts }) =>
        [...counts].map(([key, figures]) => [key, atMs, figures] as const)
      );
      await database.write([addFigures(rows)]).catch((error: unknown) => {
        const isUnsure = error instanceof OutcomeUnknownError; // it might count twice
        if (!isUnsure) unstored = [...sent, ...unstored].slice(-KEPT_MINUTES);
        throw error;
      });
    },
  };
}

/** Adds counts to the figures of their minute and of their hour. */
function addFigures(rows: readonly (readonly [key: string, atMs: number, each: Figures])[]): Sql {
  return sql`INSERT INTO figures (stepMs, key, atMs, counts)
    SELECT step.value, row.value ->> 0, (row.value ->> 1) - (row.value ->> 1) % step.value,
      row.value -> 2
    FROM json_each(${STEP_LIST}) step CROSS JOIN json_each(${JSON.stringify(rows)}) row WHERE TRUE
    ON CONFLICT DO UPDATE SET counts = json_array(${SUMS})`;
}

/** The figures of a key for intervals that began at `fromMs` or later and before `toMs`. */
export async function listFigures(
  { query }: Pick<Database, "query">,
  key: string,
  step: keyof typeof STEPS,
  fromMs: number,
  toMs: number,
): Promise<{ readonly atMs: number; readonly figures: Figures }[]> {
  const rows = await query<{ readonly atMs: number; readonly counts: string }>(
    sql`SELECT atMs, counts FROM figures WHERE stepMs = ${STEPS[step].ms} AND key = ${key}
      AND atMs >= ${fromMs} AND atMs < ${toMs} ORDER BY atMs ${limitTo(MAX_INTERVALS)}`,
  );
  return rows.map(({ atMs, counts }) => ({ atMs, figures: JSON.parse(counts) }));
}

/** Removes figures whose retention is over, of each step as many as the LIMIT `atMost` allows. */
export function dropFigures(nowMs: number, atMost: Sql): Sql[] {
  return Object.values(STEPS).map(({ ms, keptMs }) =>
    sql`DELETE FROM figures WHERE (stepMs, key, atMs) IN (SELECT stepMs, key, atMs FROM figures
      WHERE stepMs = ${ms} AND atMs < ${nowMs - keptMs} ORDER BY atMs ${atMost})`
  );
}
