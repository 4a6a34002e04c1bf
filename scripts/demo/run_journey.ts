import { randomBytes } from "node:crypto";
import type { DemoApp, Journey } from "./journey.ts";
import { callAndDeliver, failAndResend, giveUp } from "./steps_events.ts";
import {
  byClientCredentials,
  byCode,
  byPassword,
  byRefresh,
  handBack,
  logIn,
  logOut,
} from "./steps_tokens.ts";
import type { DemoStage } from "./stage.ts";
import type { Story } from "./story.ts";
import { commandLines } from "./story_text.ts";
import { createVisitor } from "./visitor.ts";

/** Runs all steps of the demo; throws at the first difference from what is documented. */
export async function runJourney(stage: DemoStage, story: Story): Promise<void> {
  const visitor = createVisitor(stage.server.url, story);
  const password = randomBytes(12).toString("base64url");
  const journey: Journey = { stage, story, visitor, username: "ada", password };

  story.begin();
  await start(journey);
  const app = await addUserAndApp(journey);
  await refuseWithoutToken(journey);
  const login = await logIn(journey);
  const subscription = await subscribe(journey, login);
  const byCodeTokens = await byCode(journey, app);
  await byClientCredentials(journey, app);
  await byPassword(journey, app);
  const tokens = await byRefresh(journey, app, byCodeTokens);
  await callAndDeliver(journey, tokens.access);
  await failAndResend(journey, tokens.access, login);
  await giveUp(journey, tokens.access, { login, subscription });
  await handBack(journey, app, tokens);
  await logOut(journey, login);
  await stop(journey);
}

async function start({ stage, story, visitor }: Journey): Promise<void> {
  story.step("An operator starts Gatepost", "Its own process, its own data folder, a free port.");
  for (const [name, value] of Object.entries(stage.env)) {
    story.line(" ", `export ${name}=${value.replace(`${process.cwd()}/`, "")}`);
  }
  story.line("$", "node dist/server.js");
  const { server, subscriber } = stage;
  story.line(" ", `listening on ${server.url} (process ${server.pid})`);
  story.line(" ", `a subscriber listens on ${subscriber.url} (process ${subscriber.pid})`);
  const about = await visitor.get("/system/about");
  story.check("it names its version", Object.keys(about.body), ["name", "version", "revision"]);
  story.check("it is alive", (await visitor.get("/system/health")).status, 200);
}

async function addUserAndApp(journey: Journey): Promise<DemoApp> {
  const { stage, story, username, password } = journey;
  story.step("The operator adds a user and an app", "Beside the running server, on its database.");
  const gatepost = async (args: readonly string[], stdin?: string) => {
    const [first = "", ...rest] = commandLines(["gatepost", ...args]);
    story.line("$", stdin === undefined ? first : `echo "$PASSWORD" | ${first}`);
    for (const line of rest) story.line(" ", line);
    const { code, stdout, stderr } = await stage.gatepost(args, stdin);
    story.block(stdout || stderr);
    story.check("exit code 0", code, 0);
    const record: Readonly<Record<string, unknown>> = JSON.parse(stdout);
    return record;
  };
  const scope = ["--scope", "consumer orders"];
  const user = await gatepost(
    ["user", "add", username, ...scope, "--password-stdin", "--json"],
    password,
  );
  story.check("a user's id starts with u", String(user["id"]).slice(0, 1), "u");
  const url = `${stage.subscriber.url}/desk/`;
  const grants = ["authorization_code", "refresh_token", "client_credentials", "password"];
  const app = await gatepost([
    ...["app", "add", "Order Desk", "--url", url, ...scope],
    ...grants.flatMap((grant) => ["--grant", grant]),
    "--json",
  ]);
  story.check("an app's id starts with a", String(app["client_id"]).slice(0, 1), "a");
  return {
    id: String(app["client_id"]),
    secret: String(app["client_secret"]),
    redirectUri: `${url}callback`,
  };
}

async function refuseWithoutToken({ story, visitor }: Journey): Promise<void> {
  story.step("Without a token, requests are refused", "A hosted endpoint, for scope orders.");
  const order = { item: "coffee", quantity: 2 };
  const bare = await visitor.postJson("/orders/1000", order);
  const challenge = bare.headers.get("www-authenticate") ?? "";
  const isBearer = challenge.startsWith('Bearer realm="gatepost"');
  story.check("401 with a Bearer challenge", [bare.status, isBearer], [401, true]);
  story.check("problem details", bare.headers.get("content-type"), "application/problem+json");
  const forged = await visitor.postJson("/orders/1000", order, "eyJhbGciOiJub25lIn0.e30.");
  const why = forged.headers.get("www-authenticate") ?? "";
  const isTold = why.includes('error="invalid_token"');
  story.check("a made-up token: 401 invalid_token", [forged.status, isTold], [401, true]);
}

async function subscribe(journey: Journey, login: string): Promise<string> {
  const { stage, story, visitor } = journey;
  story.step("Ada subscribes to an event", "Every new order will be posted to the subscriber.");
  const endpoint = `${stage.subscriber.url}/callbacks`;
  const wanted = { event: "order.created", endpoint };
  const response = await visitor.postJson("/consumer/subscription", wanted, login);
  const { id, event, endpoint: kept, status, secret } = response.body;
  story.check("201, and it is active", [response.status, { event, endpoint: kept }, status], [
    201,
    wanted,
    "active",
  ]);
  story.check(
    "Location names it",
    response.location?.endsWith(`/consumer/subscription/${id}`),
    true,
  );
  story.check("its signing secret is shown once", String(secret).startsWith("whsec_"), true);
  const again = await visitor.get(`/consumer/subscription/${id}`, login);
  story.check("and never again", again.body["secret"], undefined);
  stage.subscriber.trust(String(secret));
  return String(id);
}

async function stop({ stage, story }: Journey): Promise<void> {
  story.step("The operator stops Gatepost", "It finishes requests in progress first.");
  story.line("$", `kill -TERM ${stage.server.pid}`);
  story.check("exit code 0", await stage.stopServer(), 0);
}
