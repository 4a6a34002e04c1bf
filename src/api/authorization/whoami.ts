import { described, named, oneOf, optional, record, TEXT, URI } from "../../base/shape.ts";
import { TIME, toTime } from "../../base/time.ts";
import type { Services } from "../../services.ts";
import { holder, type Operation } from "../operation.ts";
import { SCOPE } from "./oauth_form.ts";

const CallerRecord = named("Caller", record({
  sub: TEXT,
  kind: oneOf("user", "app", "principal"),
  username: optional(TEXT),
  client_id: optional(TEXT),
  issuer: optional(described("The issuer of a principal's token.", URI)),
  scope: SCOPE,
  expires_at: TIME,
}));

/** GET /authorization/whoami: who the presented token speaks for. */
export function whoamiOperation({ accounts }: Pick<Services, "accounts">): Operation {
  // With CORS, since a single-page app asks who has logged in.
  return holder("GET", "/authorization/whoami", "whoami", "Who the access token speaks for", {
    returns: CallerRecord,
    async handle({ caller }) {
      const { sub, kind, scopes, expiresAtMs, issuer } = caller;
      const { client_id, ...named } = await accounts.nameHolder(caller);
      return {
        sub,
        kind,
        ...named,
        ...(issuer === undefined ? { client_id } : { issuer }),
        scope: scopes.join(" "),
        expires_at: toTime(expiresAtMs),
      };
    },
  });
}
