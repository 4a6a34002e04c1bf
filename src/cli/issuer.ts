import { IssuerChange, NewIssuer, PrincipalChange } from "../oauth/issuer.ts";
import { PRINCIPALS } from "../store/issuers.ts";
import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand, showCommand } from "./resource.ts";

const ISSUER: Resource = {
  noun: "issuer",
  argument: { name: "ID", meaning: "its id, as issuer list shows it", example: "i0mhc…" },
  label: "issuer",
  columns: ["issuer*", "id", "status", "scopes*", "created_at"],
  shown: ["*"],
};
const PRINCIPAL: Resource = {
  noun: "principal",
  argument: { name: "ID", meaning: "its id, as principal list shows it", example: "x0mhc…" },
  columns: ["subject*", "id", "issuer", "status", "created_at"],
};

/** The commands of `gatepost issuer` and `gatepost principal`. */
export const ISSUER_COMMANDS: readonly Command[] = [
  sendCommand(ISSUER, "add", "Accept the access tokens of another issuer", {
    details: ["Its metadata and keys are fetched at once, under the address rules of callbacks."],
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
    details: ["A disabled issuer's tokens are refused, its principals' subscriptions disabled."],
    examples: [
      "gatepost issuer set i0mhc… --status disabled",
      "gatepost issuer set i0mhc… --jwks-uri none",
    ],
    body: IssuerChange,
  }),
  sendCommand(ISSUER, "delete", "Delete an issuer, and its principals"),
  listCommand(PRINCIPAL, "List the principals of other issuers, newest first", {
    examples: ["gatepost principal list", "gatepost principal list --issuer i0mhc…"],
    query: PRINCIPALS.filters,
  }),
  showCommand(PRINCIPAL, "Show a principal"),
  sendCommand(PRINCIPAL, "set", "Disable or enable a principal", {
    details: ["A disabled principal's tokens are refused, and its subscriptions are disabled."],
    examples: ["gatepost principal set x0mhc… --status disabled"],
    body: PrincipalChange,
  }),
  sendCommand(PRINCIPAL, "delete", "Delete a principal, and its subscriptions", {
    details: ["Its next token adds it again; `principal set --status disabled` shuts it out."],
  }),
];
