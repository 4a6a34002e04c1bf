import { randomBytes } from "node:crypto";
import { type SpaServer, startSpaServer } from "./spa_server.ts";
import type { DemoStage } from "./stage.ts";
import { makeTraffic } from "./traffic.ts";

const SCOPE = "consumer orders";

/**
 * Keeps everything running for a person with a browser: a user, a single-page app on an origin of
 * its own, and a subscriber whose callbacks are printed. For the console it adds an operator and
 * traffic. Ends when `ended` rejects.
 */
export async function serveDemo(stage: DemoStage, ended: Promise<never>): Promise<never> {
  const spa = await startSpaServer();
  const stopping = new AbortController();
  try {
    const password = await prepare(stage, spa);
    const keeper = await addUser(stage, "keeper", "backend consumer");
    const { token } = await logIn(stage, "keeper", keeper);
    const send = (path: string, body: object, by = "") => post(stage, path, body, by);
    const traffic = await makeTraffic(send, String(token), stopping.signal);
    stopping.signal.addEventListener("abort", traffic.close);
    stage.subscriber.onCallback(({ headers, body, isGenuine, status }) => {
      const event = headers["gatepost-event"];
      const signature = isGenuine ? "genuine" : "FORGED";
      print(`  ⇠ ${event} ${body} (signature ${signature}, response ${status})`);
    });
    print(`
Gatepost is running, with everything around it.

  Gatepost          ${stage.server.url}

  Single-page app   ${spa.url}
  Log in as         ada
  Password          ${password}

  Console           ${stage.server.url}/console
  Log in as         keeper
  Password          ${keeper}

Open the app, sign in, allow access and place an order. Its callback is printed below, and the
console shows its event and delivery. The console also shows generated events, for subscribers of
which some fail. Ada's account is at /account.
Ctrl+C stops everything.
`);
    return await ended;
  } finally {
    stopping.abort();
    await spa.close();
  }
}

/** Adds a user and an app, and subscribes to the events of the app; returns the password. */
async function prepare(stage: DemoStage, spa: SpaServer): Promise<string> {
  const password = await addUser(stage, "ada", SCOPE);
  const scope = ["--scope", SCOPE, "--json"];
  const app = ["app", "add", "Harbour Orders", "--public", "--url", spa.url, ...scope];
  const { client_id: clientId } = await run(stage, app);
  spa.configure({ issuer: stage.server.url, clientId: String(clientId), scope: SCOPE });

  const { token } = await logIn(stage, "ada", password);
  const endpoint = `${stage.subscriber.url}/callbacks`;
  const wanted = { event: "order.created", endpoint };
  const { secret } = await post(stage, "/consumer/subscription", wanted, String(token));
  stage.subscriber.trust(String(secret));
  return password;
}

/** Adds a user; returns the password. */
async function addUser(stage: DemoStage, name: string, scope: string): Promise<string> {
  const password = randomBytes(9).toString("base64url");
  const args = ["user", "add", name, "--password-stdin", "--scope", scope, "--json"];
  await run(stage, args, password);
  return password;
}

const logIn = (stage: DemoStage, username: string, password: string) =>
  post(stage, "/consumer/login", { username, password });

type Members = Readonly<Record<string, unknown>>;

async function run(stage: DemoStage, args: readonly string[], stdin?: string): Promise<Members> {
  const { code, stdout, stderr } = await stage.gatepost(args, stdin);
  if (code !== 0) throw new Error(`gatepost ${args.slice(0, 2).join(" ")}: ${stderr}`);
  return JSON.parse(stdout);
}

async function post(stage: DemoStage, path: string, body: object, token = ""): Promise<Members> {
  const response = await fetch(stage.server.url + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${await response.text()}`);
  return response.json();
}

function print(text: string): void {
  process.stdout.write(`${text}\n`);
}
