import { Mute } from "../api/backend/problem.ts";
import { SERIES_QUERY } from "../api/backend/series.ts";
import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand } from "./resource.ts";

const PROBLEM: Resource = {
  noun: "problem",
  argument: { name: "ID", meaning: "the problem, as problem list shows it", example: "key" },
  columns: ["id", "since", "title*", "detail*", "muted_until"],
};
const SERIES = {
  noun: "series",
  columns: ["at", "ok", "bad", "failed", "mean_ms", "p50_ms", "p95_ms", "p99_ms"],
};
const CONFIG = { noun: "config", columns: ["name", "value"] };

/** The commands of `gatepost problem`, and others that show how well the service works. */
export const PROBLEM_COMMANDS: readonly Command[] = [
  listCommand(PROBLEM, "List what is wrong, the worst first", {
    details: ["What only a running server knows of itself, GET /backend/problem tells."],
    isUnpaged: true,
  }),
  sendCommand(PROBLEM, "mute", "Have a problem come last for a while", {
    examples: ["gatepost problem mute key --until 2030-01-31T12:00:00Z"],
    method: "PUT",
    below: "/mute",
    body: Mute,
    done: (id) => `Problem ${id} is muted.`,
  }),
  sendCommand(PROBLEM, "unmute", "Mute a problem no more", {
    method: "DELETE",
    below: "/mute",
    confirm: (id) => `Mute problem ${id} no more?`,
    done: (id) => `Problem ${id} is muted no more.`,
  }),
  listCommand(SERIES, "List what was counted, by the minute or the hour", {
    examples: ["gatepost series list", "gatepost series list --of logins --step hour"],
    query: SERIES_QUERY,
    isUnpaged: true,
  }),
  listCommand(CONFIG, "List the configuration that is in force", {
    details: ["As this command's own environment gives it: GET /backend/config tells a server's."],
  }),
];
