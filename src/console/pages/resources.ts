import { auditBy, things } from "../things.ts";

export const show = things({
  words: "Services beside this one that tokens are issued for (RFC 8707).",
  path: "resource",
  columns: ["url", "scopes", "created_at"],
  empty: "Tokens are for this service alone. Add a resource that they are to be issued for too.",
  deletion: "The grants for it end.",
  related: [auditBy("target")],
});
