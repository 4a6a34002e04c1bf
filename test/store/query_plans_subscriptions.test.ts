import { newId } from "../../src/base/id.ts";
import { createSeal } from "../../src/base/seal.ts";
import { listMuted, muteProblem, unmuteProblem } from "../../src/store/muted_problems.ts";
import { clearEndedSubscriptions, endSubscriptions } from "../../src/store/subscription_end.ts";
import {
  findSubscription,
  insertSubscription,
  replaceSubscriptionSecret,
  SUBSCRIPTION_LIST,
  updateSubscription,
  wakePaused,
} from "../../src/store/subscriptions.ts";
import { NEVER } from "../helpers/never.ts";
import {
  type Case,
  EVENT,
  listing,
  NOW_MS,
  of,
  openPlans,
  OWNER,
  SUBSCRIPTION,
  subsets,
  writing,
} from "../helpers/query_plans.ts";

const USER = newId("u", NOW_MS);
const END = { reason: "x" };

const { testPlans, testIndexes } = await openPlans();

testPlans([
  writing("storing a subscription", () => [
    insertSubscription(SUBSCRIPTION, createSeal(undefined)),
  ]),
  ...subsets({ q: ["https://a"], event: [EVENT.name], status: ["paused"] })
    .map((given) => listing("all subscriptions", given, of(SUBSCRIPTION_LIST))),
  ...subsets({ event: [EVENT.name], status: ["paused"], app: ["a1"] }).map((given): Case => ({
    ...listing("a principal's subscriptions", { ...given, owner: OWNER }, of(SUBSCRIPTION_LIST)),
    sorts: true, // a principal has a hundred at most
    by: "subscriptions_by_principal (principal=?)",
  })),
  ...[undefined, "a00000000"].flatMap((app): Case[] => [
    {
      name: `finding a principal's subscription, app: ${app}`,
      run: (database) =>
        findSubscription(database, SUBSCRIPTION.id, { owner: OWNER, app }),
    },
  ]),
  {
    name: "waking subscriptions whose pause has ended",
    run: (database) => wakePaused(database, NOW_MS),
  },
  {
    name: "muting problems",
    async run(database) {
      await database.write([muteProblem("key", NOW_MS + 1), unmuteProblem("key")]);
      await listMuted(database, NOW_MS);
    },
  },
  {
    name: "finding a subscription of any principal",
    run: (database) => findSubscription(database, SUBSCRIPTION.id),
  },
  writing("changing a subscription", () => [
    updateSubscription(
      SUBSCRIPTION.id,
      { endpoint: undefined, status: "paused" },
      SUBSCRIPTION.grant,
    ),
    replaceSubscriptionSecret(SUBSCRIPTION.id, "whsec_", NOW_MS, createSeal(undefined)),
  ]),
  {
    ...writing("ending by app", () => endSubscriptions({ app: "a1" }, END, NOW_MS)),
    by: "subscriptions_by_app (app=?)",
  },
  ...[{ user: USER }, { user: USER, app: "a1" }].map((who) => ({
    ...writing(`ending by ${Object.keys(who)}`, () => endSubscriptions(who, END, NOW_MS)),
    by: "subscriptions_by_principal (principal=?)",
  })),
  {
    ...writing("ending by grant", () => endSubscriptions({ grant: "g1" }, END, NOW_MS)),
    by: "subscriptions_by_grant (grantId=?)",
  },
  writing("ending subscriptions with a scope", () =>
    endSubscriptions({ app: "a1" }, { ...END, scopes: ["a", "b"] }, NOW_MS)),
  writing("ending subscriptions of a deleted app", () =>
    endSubscriptions({ app: "a1" }, { ...END, deletes: true }, NOW_MS)),
  {
    name: "cancelling the remaining deliveries of all subscriptions",
    sorts: true, // those of one principal
    run: (database) =>
      clearEndedSubscriptions(database, () => NOW_MS, NEVER),
  },
]);

testIndexes([
  ["subscriptions_by_principal",
    listing("subscriptions", { owner: OWNER }, of(SUBSCRIPTION_LIST))],
  ["subscriptions_by_endpoint",
    listing("subscriptions", { q: "https://a" }, of(SUBSCRIPTION_LIST))],
]);
