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
    details: ["Apps request its tokens by the parameter `resource`; Gatepost itself refuses them."],
    examples: ['gatepost resource add https://mcp.example.com/mcp --scope "files"'],
    body: NewResource,
    members: { url: { argument: "URL", meaning: "its URL, which its tokens have as aud" } },
  }),
  listCommand(RESOURCE, "List registered resources, newest first"),
  showCommand(RESOURCE, "Show a registered resource"),
  sendCommand(RESOURCE, "set", "Change the scopes that tokens for a resource may have", {
    examples: ['gatepost resource set p0m… --scope "files files:write"'],
    body: ResourceChange,
  }),
  sendCommand(RESOURCE, "delete", "Delete a resource, and end its grants"),
];
