import { auditBy, grantsBy, subscriptionsBy, things } from "../things.ts";

export const show = things({
  words: "Who can sign in, and with which scopes at most.",
  path: "user",
  columns: ["username", "status", "scopes", "created_at"],
  filters: ["q", "status"],
  hint: "Name begins with…  status:disabled",
  empty: "No user is called so.",
  deletion: "All tokens end.",
  related: [
    grantsBy("user"),
    {
      title: "Sessions",
      path: "user/{id}/session",
      columns: ["agent", "address", "created_at", "seen_at"],
      empty: "No browser is signed in.",
    },
    subscriptionsBy("owner"),
    auditBy("actor"),
    auditBy("target"),
  ],
});
