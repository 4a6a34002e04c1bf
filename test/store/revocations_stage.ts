import { idTimeMs, newId } from "../../src/base/id.ts";
import { callerOf, NOW_MS } from "../helpers/grant_stage.ts";

/** A grant of a user to an app, when it was made, and the caller with an access token of it. */
export const grantId = newId("g", NOW_MS);
export const madeAtMs = idTimeMs(grantId);
export const caller = callerOf({ id: grantId, app: "a1", user: "u1" });
