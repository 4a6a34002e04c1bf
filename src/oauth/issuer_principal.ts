import { idOf } from "../base/id.ts";
import { type Infer, named, object, pick, record, TEXT } from "../base/shape.ts";
import { TIME, toTime } from "../base/time.ts";
import { ACCOUNT_STATUS } from "./user.ts";

/** What of a principal may change. */
export const PrincipalChange = named("PrincipalChange", object({ status: ACCOUNT_STATUS }));

/** A principal as the backend shows it: `subject` is what its issuer calls it, in `sub`. */
export const PrincipalRecord = named("Principal", record({
  id: idOf("x"),
  issuer: idOf("i"),
  subject: TEXT,
  status: ACCOUNT_STATUS,
  created_at: TIME,
}));

/** Whom tokens of another issuer speak for; made when one is first presented. */
export interface Principal extends Omit<Infer<typeof PrincipalRecord>, "created_at"> {
  readonly createdAtMs: number;
}

/** A principal as the backend shows it. */
export function toPrincipalRecord(principal: Principal): Infer<typeof PrincipalRecord> {
  return pick(PrincipalRecord, { ...principal, created_at: toTime(principal.createdAtMs) });
}
