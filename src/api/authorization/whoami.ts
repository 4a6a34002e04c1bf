import { formatScope } from "../../oauth/scope.ts";
import type { Database } from "../../database/database.ts";
import { findUser } from "../../store/users.ts";
import { jsonResponse, NO_STORE } from "../../http/respond.ts";
import type { ProtectedRoute } from "../route.ts";

/** GET /authorization/whoami: who the presented token speaks for. */
export function whoamiRoute(database: Database): ProtectedRoute {
  return {
    method: "GET",
    path: "/authorization/whoami",
    access: [],
    cors: true, // a single-page app asks who has logged in
    summary: "Who the access token speaks for",
    async handle({ caller }) {
      const { sub, kind, clientId, scopes, expiresAtMs } = caller;
      const user = kind === "user" ? await findUser(database, sub) : undefined;
      return jsonResponse(200, {
        sub,
        kind,
        // The second name is OpenID Connect's (Core §5.1), which client libraries look for.
        ...(user && { username: user.username }),
        client_id: clientId,
        scope: formatScope(scopes),
        expires_at: new Date(expiresAtMs).toISOString(),
      }, NO_STORE);
    },
  };
}
