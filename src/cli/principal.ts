import { PrincipalChange } from "../oauth/issuer.ts";
import { PRINCIPALS } from "../store/issuers.ts";
import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand, showCommand } from "./resource.ts";

const PRINCIPAL: Resource = {
  noun: "principal",
  argument: { name: "ID", meaning: "as principal list shows it", example: "x0mhc…" },
  columns: ["subject*", "id", "issuer", "status", "created_at"],
};

export const PRINCIPAL_COMMANDS: readonly Command[] = [
  listCommand(PRINCIPAL, {
    purpose: "List whom tokens of other issuers speak for, newest first",
    examples: ["gatepost principal list", "gatepost principal list --issuer i0mhc…"],
    query: PRINCIPALS.filters,
  }),
  showCommand(PRINCIPAL, { purpose: "Show a principal" }),
  sendCommand(PRINCIPAL, "set", {
    purpose: "Disable a principal, or let it in again",
    details: ["Its tokens are refused while it is disabled; its subscriptions end."],
    examples: ["gatepost principal set x0mhc… --status disabled"],
    body: PrincipalChange,
  }),
  sendCommand(PRINCIPAL, "delete", {
    purpose: "Forget a principal until its next token",
    details: ["Its subscriptions are removed. `principal set --status disabled` shuts it out."],
  }),
];
