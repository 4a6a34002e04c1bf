import { idOf } from "../names.ts";
import { auditBy, statusButton, subscriptionsBy, things } from "../things.ts";

export const show = things({
  words: "Other authorization servers whose access tokens are accepted here.",
  path: "issuer",
  columns: ["issuer", "status", "scopes", "created_at"],
  empty: "Only tokens of this service are accepted. Add an issuer whose tokens are to be too.",
  deletion: "Its tokens are refused, and its principals forgotten.",
  related: [
    {
      title: "Principals",
      path: "principal",
      by: "issuer",
      columns: ["subject", "status", "id", "created_at"],
      empty: "No token of it has come yet.",
      act: (one) => statusButton(one, `/backend/principal/${idOf(one)}`,
        "Its subscriptions are disabled."),
    },
    subscriptionsBy("app"),
    auditBy("target"),
  ],
});
