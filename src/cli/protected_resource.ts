import { NewResource, ResourceChange } from "../oauth/resource.ts";
import type { Command } from "./command.ts";
import { listCommand, type Resource, sendCommand, showCommand } from "./resource.ts";

const RESOURCE: Resource = {
  noun: "resource",
  argument: { name: "ID", meaning: "its id, as resource list shows it", example: "p0m…" },
  label: "url",
  columns: ["url*", "id", "scopes*"],
  shown: ["*"],
};

export const RESOURCE_COMMANDS: readonly Command[] = [
  sendCommand(RESOURCE, "add", "Register a service that tokens are issued for", {
    details: ["An app names it as `resource`; such a token is refused by this service."],
    examples: ['gatepost resource add https://mcp.example.com/mcp --scope "files"'],
    body: NewResource,
    members: { url: { argument: "URL", meaning: "what an app names, and the aud" } },
  }),
  listCommand(RESOURCE, "List registered resources, newest first"),
  showCommand(RESOURCE, "Show a registered resource"),
  sendCommand(RESOURCE, "set", "Change what tokens for a resource may carry", {
    examples: ['gatepost resource set p0m… --scope "files files:write"'],
    body: ResourceChange,
  }),
  sendCommand(RESOURCE, "delete", "Remove a resource, and end the grants for it"),
];
