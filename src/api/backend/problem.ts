import { recordOf } from "../../base/fields.ts";
import { refinedMember } from "../../base/refined_member.ts";
import {
  described,
  named,
  nullable,
  object,
  oneOf,
  optional,
  record,
  TEXT,
} from "../../base/shape.ts";
import { TIME, TIME_MS, toTime } from "../../base/time.ts";
import type { Disk } from "../../database/disk.ts";
import { addUp } from "../../event/figures.ts";
import type { Services } from "../../services.ts";
import { listFigures } from "../../store/figures.ts";
import { listMuted, muteProblem, unmuteProblem } from "../../store/muted_problems.ts";
import { listFailing } from "../../store/subscriptions.ts";
import { type Administration, checkChanged, found, storeAudited } from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { pageOf } from "../pagination.ts";
import { READY_STATES } from "../system/status.ts";

const PATH = "/backend/problem";
const KEY_AGE_MS = 365 * 86_400_000;
const SIGN_IN_WINDOW_MS = 15 * 60_000;
const FAILING_AT_MOST = 100;
/** Less free space on the disk than either of these is a problem. */
const [MIN_FREE_BYTES, MIN_FREE_SHARE] = [2 ** 30, 0.05];

/** What it means if a part of the process is not ready. */
const PARTS = [
  ["database", "Writes are refused, or may be lost"],
  ["distributor", "Events are not distributed"],
  ["callbacks", "Callbacks wait: this process lacks a resource"],
] as const;
const KINDS = [
  "database", "distributor", "callbacks", "node", "disk", "sign_in", "failing", "cronjob", "key",
  "setting",
] as const;

export const ProblemRecord = named("OpenProblem", record({
  id: TEXT,
  kind: oneOf(...KINDS),
  title: TEXT,
  detail: TEXT,
  since: nullable(TIME),
  link: optional(described("The path of what it is about.", TEXT)),
  muted_until: optional(TIME),
}));
const toRecord = recordOf(ProblemRecord);

const UNTIL = described("The problem is listed last until this time.", TIME_MS);
export const Mute = named("Mute", object({ until: UNTIL }));

/** The services that `findProblems` asks. */
export type ProblemServices = Pick<
  Services,
  "database" | "readiness" | "keys" | "jobs" | "warnings" | "config" | "now" | "disk" | "cluster"
>;

/** Lists what is wrong now, as this process and the database know it: worst first, muted last. */
export async function findProblems(services: ProblemServices) {
  const { database, readiness, keys, jobs, warnings, config: { disableAfterMs } } = services;
  const nowMs = services.now();
  const [{ parts }, failing, logins, cronjobs, muted, disk] = await Promise.all([
    readiness(true),
    listFailing(database, { limit: FAILING_AT_MOST }),
    listFigures(database, "logins", "minute", nowMs - SIGN_IN_WINDOW_MS, nowMs),
    jobs.listCronjobs(),
    listMuted(database, nowMs),
    services.disk(),
  ]);
  const [, , unchecked = 0] = addUp(logins.map(({ figures }) => figures));
  const { signsFromMs = nowMs } = keys.findSigning() ?? {};
  const toProblem = (
    kind: typeof KINDS[number],
    about: string | undefined, // which one, where there may be several of the kind
    [title, detail]: readonly [title: string, detail: string],
    sinceMs: number | null = null,
    link?: string,
  ) => {
    const id = about === undefined ? kind : `${kind}-${about}`;
    return toRecord({ id, kind, title, detail, sinceMs, link, mutedUntilMs: muted.get(id) });
  };
  const problems = [
    ...PARTS.filter(([kind]) => !READY_STATES.has(String(parts[kind] ?? "ok")))
      .map(([kind, title]) => toProblem(kind, undefined, [title, `Its state is ${parts[kind]}.`])),
    ...(services.cluster?.nodes() ?? []).filter(([, isUp]) => !isUp).map(([node]) =>
      toProblem("node", idPart(node), [
        "A node of the database does not work",
        `${node}: see the log. The cluster works without it, but may not without another.`,
      ])),
    ...findFullDisk(disk).map((words) => toProblem("disk", undefined, words)),
    ...(unchecked === 0 ? [] : [toProblem("sign_in", undefined, [
      "Sign-ins are refused without a check",
      `${unchecked} in 15 minutes: too many have failed, or came at once.`,
    ], undefined, "/backend/audit?action=user.login_failed")]),
    ...failing.items.map(({ id, event, endpoint, failingSinceMs }) => {
      const endMs = (failingSinceMs ?? 0) + disableAfterMs;
      const when = endMs > nowMs ? `at ${toTime(endMs)}` : "after the next failure";
      const end = disableAfterMs === 0 ? ""
        : ` If none does, the subscription is disabled ${when}.`;
      const title = `Callbacks to ${new URL(endpoint).host} fail`;
      const words = [title, `No callback of ${event} has succeeded since.${end}`] as const;
      return toProblem("failing", id, words, failingSinceMs, `/backend/subscription/${id}`);
    }),
    ...cronjobs.flatMap(({ name, lastError: reason, lastAtMs }) => {
      const words = [`Cronjob ${name} has failed`, reason ?? ""] as const;
      return reason === null ? [] : toProblem("cronjob", name, words, lastAtMs, "/backend/cronjob");
    }),
    ...(signsFromMs >= nowMs - KEY_AGE_MS ? [] : [toProblem("key", undefined, [
      "The signing key is old",
      "It has signed for more than a year; rotate it.",
    ], signsFromMs, "/backend/key")]),
    ...warnings.map((detail) => {
      const [title = ""] = detail.split(":");
      return toProblem("setting", idPart(title), [title, detail]);
    }),
  ];
  const isMuted = (each: typeof problems[number]) => Number(each.muted_until !== undefined);
  return problems.toSorted((one, other) => isMuted(one) - isMuted(other));
}

/** Makes the part of a problem's id that says what it is about; safe in a path. */
function idPart(about: string): string {
  return about.replace(/\W+/g, "_");
}

/** Returns title and detail of the problem of a nearly full disk; empty if there is room. */
function findFullDisk(disk: Disk | undefined): (readonly [title: string, detail: string])[] {
  const { freeBytes, totalBytes } = disk ?? { freeBytes: Infinity, totalBytes: 0 };
  if (freeBytes >= Math.max(MIN_FREE_BYTES, MIN_FREE_SHARE * totalBytes)) return [];
  const free = `${Math.floor(freeBytes / 2 ** 20)} MiB`;
  const percent = Math.floor(100 * freeBytes / totalBytes);
  return [["The disk is nearly full", `${free} (${percent} %) are free where the database is.`]];
}

/** /backend/problem: what an operator should look at. */
export function problemOperations(services: ProblemServices & Administration): Operation[] {
  const { now } = services;
  return [
    backend("GET", PATH, "listProblems", "List what is wrong, worst first, muted last", {
      returns: pageOf(ProblemRecord),
      handle: async () => ({ items: await findProblems(services), next_cursor: null }),
    }),
    backend("PUT", `${PATH}/:id/mute`, "muteProblem", "Mute a problem until a time", {
      body: refinedMember(Mute, "until", (untilMs, report) => {
        if (untilMs <= now()) report("Must be in the future.");
      }),
      async handle({ params: { id }, body: { until }, ...context }) {
        found((await findProblems(services)).find((each) => each.id === id), "problem");
        await storeAudited(context, "problem.mute", id, [muteProblem(id, until)], services);
      },
    }),
    backend("DELETE", `${PATH}/:id/mute`, "unmuteProblem", "Unmute a problem", {
      async handle({ params: { id }, ...context }) {
        const unmute = unmuteProblem(id);
        const changes = await storeAudited(context, "problem.unmute", id, [unmute], services);
        checkChanged(changes, "muted problem");
      },
    }),
  ];
}
