import { Mute } from "../api/backend/problem.ts";
import { SERIES_QUERY } from "../api/backend/series.ts";
import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand } from "./resource.ts";

const PROBLEM: Resource = {
  noun: "problem",
  argument: { name: "ID", meaning: "its id, as problem list shows it", example: "key" },
  columns: ["id", "since", "title*", "detail*", "muted_until"],
};
const SERIES = {
  noun: "series",
  columns: ["at", "ok", "bad", "failed", "mean_ms", "p50_ms", "p95_ms", "p99_ms"],
};
const CONFIG = { noun: "config", columns: ["name", "value"] };

/** The commands of `gatepost problem`, and others that show how well the service works. */
export const PROBLEM_COMMANDS: readonly Command[] = [
  listCommand(PROBLEM, "List current problems, the worst first", {
    details: ["GET /backend/problem also lists what only a running server knows of itself."],
    isUnpaged: true,
  }),
  sendCommand(PROBLEM, "mute", "Mute a problem for a while: it is listed last", {
    examples: ["gatepost problem mute key --until 2030-01-31T12:00:00Z"],
    method: "PUT",
    below: "/mute",
    body: Mute,
    done: (id) => `Problem ${id} is muted.`,
  }),
  sendCommand(PROBLEM, "unmute", "Unmute a problem", {
    method: "DELETE",
    below: "/mute",
    confirm: (id) => `Unmute problem ${id}?`,
    done: (id) => `Problem ${id} is no longer muted.`,
  }),
  listCommand(SERIES, "List counts and durations, by minute or by hour", {
    examples: ["gatepost series list", "gatepost series list --of logins --step hour"],
    query: SERIES_QUERY,
    isUnpaged: true,
  }),
  listCommand(CONFIG, "List the configuration in force", {
    details: ["It comes from this command's environment; GET /backend/config shows a server's."],
  }),
];
