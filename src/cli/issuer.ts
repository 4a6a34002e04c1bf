import { IssuerChange, NewIssuer, PrincipalChange } from "../oauth/issuer.ts";
import { PRINCIPALS } from "../store/issuers.ts";
import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand, showCommand } from "./resource.ts";

const ISSUER: Resource = {
  noun: "issuer",
  argument: { name: "ID", meaning: "the issuer's id, as issuer list shows it", example: "i0mhc…" },
  label: "issuer",
  columns: ["issuer*", "id", "status", "scopes*", "created_at"],
  shown: ["*"],
};
const PRINCIPAL: Resource = {
  noun: "principal",
  argument: { name: "ID", meaning: "as principal list shows it", example: "x0mhc…" },
  columns: ["subject*", "id", "issuer", "status", "created_at"],
};

/** The commands of `gatepost issuer` and `gatepost principal`. */
export const ISSUER_COMMANDS: readonly Command[] = [
  sendCommand(ISSUER, "add", "Accept the access tokens of another issuer", {
    details: ["Its metadata and keys are fetched at once, by way of the callbacks' address guard."],
    examples: [
      'gatepost issuer add https://id.example.com --scope "consumer orders"',
      "gatepost issuer add https://id.example.com --scope orders --scope-claim roles --jwt-type",
    ],
    body: NewIssuer,
    members: { issuer: { argument: "URL" } },
    done: (name) => `Tokens of ${name} are accepted.`,
  }),
  listCommand(ISSUER, "List the issuers whose tokens are accepted, newest first"),
  showCommand(ISSUER, "Show an issuer"),
  sendCommand(ISSUER, "set", "Change an issuer", {
    details: ["Of one that is disabled tokens are refused, and its principals' subscriptions end."],
    examples: [
      "gatepost issuer set i0mhc… --status disabled",
      "gatepost issuer set i0mhc… --jwks-uri none",
    ],
    body: IssuerChange,
  }),
  sendCommand(ISSUER, "delete", "Remove an issuer, and its principals"),
  listCommand(PRINCIPAL, "List whom tokens of other issuers speak for, newest first", {
    examples: ["gatepost principal list", "gatepost principal list --issuer i0mhc…"],
    query: PRINCIPALS.filters,
  }),
  showCommand(PRINCIPAL, "Show a principal"),
  sendCommand(PRINCIPAL, "set", "Disable a principal, or let it in again", {
    details: ["Its tokens are refused while it is disabled; its subscriptions end."],
    examples: ["gatepost principal set x0mhc… --status disabled"],
    body: PrincipalChange,
  }),
  sendCommand(PRINCIPAL, "delete", "Forget a principal until its next token", {
    details: ["Its subscriptions are removed. `principal set --status disabled` shuts it out."],
  }),
];
