import { auditBy, revokeGrant, things } from "../things.ts";

export const show = things({
  words: "What users have allowed apps, and what they signed in for.",
  path: "grant",
  columns: ["user", "status", "app", "scopes", "last_used_at", "expires_at"],
  filters: ["user", "app"],
  empty: "Nobody has signed in or allowed an app.",
  actions: revokeGrant,
  related: [auditBy("target")],
});
