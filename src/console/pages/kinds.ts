import { call } from "../api.ts";
import { asking } from "../asking.ts";
import { idOf, nameOf } from "../names.ts";
import type { Place } from "../router.ts";
import {
  auditBy, grantsBy, type Kind, revokeGrant, showKind, statusButton, subscriptionsBy,
} from "../things.ts";

const rotate = (label: string, words: string, at_once: boolean) =>
  asking(label, "to 1 new key", words, () => call("POST", "/backend/key", { at_once }));

/** The pages that show only records and their members, by the first segment of the address. */
const KINDS: Readonly<Record<string, Kind>> = {
  users: {
    words: "Who can sign in, and the scopes that they may have.",
    path: "user",
    columns: ["username", "status", "scopes", "created_at"],
    filters: ["q", "status"],
    hint: "Name begins with…  status:disabled",
    empty: "No user yet: one that is added can sign in.",
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
  },
  grants: {
    words: "What users have allowed apps to do, and their sign-ins.",
    path: "grant",
    columns: ["user", "status", "app", "scopes", "last_used_at", "expires_at"],
    filters: ["user", "app"],
    empty: "Nobody has signed in or allowed an app.",
    actions: revokeGrant,
    related: [auditBy("target")],
  },
  issuers: {
    words: "Other authorization servers whose access tokens are accepted here.",
    path: "issuer",
    columns: ["issuer", "status", "scopes", "created_at"],
    empty: "Only tokens of this service are accepted. Add an issuer to accept its tokens too.",
    deletion: "Its tokens will be refused, and its principals deleted.",
    related: [
      {
        title: "Principals",
        path: "principal",
        by: "issuer",
        columns: ["subject", "status", "id", "created_at"],
        empty: "No token of this issuer has been presented yet.",
        act: (one) => statusButton(one, `/backend/principal/${idOf(one)}`,
          "Its subscriptions are disabled."),
      },
      subscriptionsBy("app"),
      auditBy("target"),
    ],
  },
  resources: {
    words: "Other services that tokens are issued for (RFC 8707).",
    path: "resource",
    columns: ["url", "scopes", "created_at"],
    empty: "Tokens are issued for this service only. Add a resource to issue tokens for it too.",
    deletion: "The grants for it end.",
    related: [auditBy("target")],
  },
  cronjobs: {
    words: "Jobs that run at intervals, including the service's own.",
    path: "cronjob",
    columns: ["name", "status", "every", "last_run", "duration_ms", "next_run", "error"],
    empty: "This process runs no cronjob.",
    isPolled: true,
    act: (job) => asking("Run now", nameOf(job), "Its next scheduled run does not change.",
      () => call("POST", `/backend/cronjob/${nameOf(job)}/run`)),
  },
  keys: {
    words: "The keys that sign access tokens. Whoever verifies tokens fetches the public keys.",
    path: "key",
    columns: ["kid", "status", "alg", "created_at", "signs_from", "published_until"],
    empty: "No key is published.",
    isPolled: true,
    top: () => [
      rotate("Rotate in 10 minutes", "Until it signs, everybody can fetch the new key.", false),
      rotate("Rotate at once", "For leaks. Others refuse new tokens until they fetch it.", true),
    ],
    act(key) {
      const typed = idOf(key).slice(0, 8);
      return asking("Withdraw at once", typed, "Every token that it signed is refused from now on.",
        () => call("DELETE", `/backend/key/${idOf(key)}`), { look: { kind: "danger" }, typed });
    },
  },
};

export function show(place: Place, name: string) {
  const kind = KINDS[place.page];
  return kind && showKind(kind, place, name);
}
