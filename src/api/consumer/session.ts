import { recordOf } from "../../base/fields.ts";
import { SessionRecord } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import { listSessions, sessionId } from "../../store/sessions.ts";
import { findUser } from "../../store/users.ts";
import { type Administration, found } from "../administration.ts";
import { backend, consumer, type Operation } from "../operation.ts";
import { listingOf } from "../pagination.ts";
import { endSession, endSessions, loggedInUser } from "./account_acts.ts";

const PATH = "/consumer/session";

/** The browsers in which a user has logged in, for the user and for operators. */
export function sessionOperations(
  services: Administration & Pick<Services, "sessions">,
): Operation[] {
  const { database, now, sessions } = services;

  return [
    consumer("GET", PATH, "listSessions", "List the browsers in which the caller has logged in",
      listingOf(SessionRecord, keyOf, "down", async ({ caller, request }) => {
        const own = await listSessions(database, loggedInUser(caller), now());
        const current = sessionId((await sessions.open(request)).hash);
        return own.map((session) => ({ ...toRecord(session), current: session.id === current }));
      })),
    consumer("DELETE", `${PATH}/:id`, "endSession", "Sign out in one browser", {
      handle: ({ params, ...context }) => endSession(context, params.id, services),
    }),
    consumer("DELETE", PATH, "endSessions", "Sign out in every browser", {
      handle: (context) => endSessions(context, undefined, services),
    }),
  ];
}

/** GET /backend/user/{id}/session: those of any user. */
export function managedSessionOperation(
  { database, now }: Pick<Services, "database" | "now">,
): Operation {
  return backend("GET", "/backend/user/:id/session", "listSessionsOf",
    "List the browsers in which a user has logged in",
    listingOf(SessionRecord, keyOf, "down", async ({ params: { id = "" } }) => {
      found(await findUser(database, id), "user");
      return (await listSessions(database, id, now())).map(toRecord);
    }));
}

const keyOf = ({ created_at, id }: ReturnType<typeof toRecord>) => `${created_at} ${id}`;

const toRecord = recordOf(SessionRecord);
