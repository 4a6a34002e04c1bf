import { readWayBack, signInAddress } from "./oauth.js";

/** Kept in memory alone: what a reload forgets, no other script finds in storage. */
/** @type {import("./oauth.js").Tokens | undefined} */
let tokens;

/** @type {{ issuer: string, clientId: string, scope: string }} */
const config = await (await fetch("config.json")).json();
const app = { ...config, redirectUri: `${location.origin}/` };
/** @type {import("./oauth.js").Metadata} */
const metadata = await call("GET", `${config.issuer}/.well-known/oauth-authorization-server`);

onClick("sign-in", async () => location.assign(await signInAddress(metadata, app)));
onClick("refresh", refresh);
onClick("sign-out", signOut);
element("order").addEventListener("submit", (event) => {
  event.preventDefault();
  attempt(placeOrder);
});

const query = new URLSearchParams(location.search);
if (query.has("state") || query.has("code") || query.has("error")) {
  // The code leaves the address bar and the history before anything else happens.
  history.replaceState(null, "", location.pathname);
  await attempt(async () => {
    tokens = await callForm(metadata.token_endpoint, readWayBack(query, metadata, app));
    await showUser();
  });
}
show();

async function showUser() {
  const who = await call("GET", `${config.issuer}/authorization/whoami`);
  element("user").textContent = who.username;
  element("scope").textContent = who.scope;
  element("expiry").textContent = new Date(who.expires_at).toLocaleTimeString();
  say("");
}

async function placeOrder() {
  const form = element("order");
  if (!(form instanceof HTMLFormElement)) return;
  const fields = new FormData(form);
  const id = Date.now().toString(36);
  const order = { item: fields.get("item"), quantity: Number(fields.get("quantity")) };
  const placed = await call("POST", `${config.issuer}/orders/${id}`, order);
  say(`Order ${placed.id} is placed: ${placed.quantity} × ${placed.item}.`);
}

async function refresh() {
  tokens = await callForm(metadata.token_endpoint, {
    grant_type: "refresh_token",
    client_id: app.clientId,
    refresh_token: tokens?.refresh_token ?? "",
  });
  await showUser();
  say("Both tokens are new; the old refresh token is used up.");
}

/** Revoking the refresh token ends every token of this sign-in at once (RFC 7009 §2.1). */
async function signOut() {
  await callForm(metadata.revocation_endpoint, {
    client_id: app.clientId,
    token: tokens?.refresh_token ?? "",
  });
  tokens = undefined;
  show();
  say("You are signed out; the tokens are good for nothing now.");
}

/**
 * @param {string} method
 * @param {string} url
 * @param {unknown} [body]
 */
async function call(method, url, body) {
  /** @type {Record<string, string>} */
  const headers = {};
  if (tokens !== undefined) headers["Authorization"] = `Bearer ${tokens.access_token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  return send(url, { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) });
}

/**
 * @param {string} url
 * @param {Record<string, string>} fields
 */
function callForm(url, fields) {
  return send(url, { method: "POST", body: new URLSearchParams(fields) });
}

/**
 * @param {string} url
 * @param {RequestInit} init
 */
async function send(url, init) {
  const response = await fetch(url, { ...init, credentials: "omit" });
  const text = await response.text();
  const answer = text === "" ? undefined : JSON.parse(text);
  note(`${init.method} ${url.replace(config.issuer, "")} → ${response.status}`, shorten(text));
  if (response.ok) return answer;
  throw new Error(answer.detail ?? answer.error_description ?? `${response.status}`);
}

/** @param {string} text What was answered, its tokens cut short: pages get photographed. */
function shorten(text) {
  const short = text.replace(/"([\w.-]{12})[\w.-]{20,}"/g, '"$1…"');
  return short.length > 160 ? `${short.slice(0, 160)}…` : short;
}

/** @param {() => Promise<void>} act */
async function attempt(act) {
  try {
    await act();
  } catch (error) {
    say(error instanceof Error ? error.message : String(error), "error");
  }
}

function show() {
  element("signed-in").hidden = tokens === undefined;
  element("signed-out").hidden = tokens !== undefined;
}

/**
 * @param {string} text
 * @param {string} [kind]
 */
function say(text, kind = "") {
  element("message").textContent = text;
  element("message").className = kind;
}

/**
 * @param {string} call
 * @param {string} answer
 */
function note(call, answer) {
  const [line, code, body] = ["li", "code", "span"].map((name) => document.createElement(name));
  if (!line || !code || !body) return;
  code.textContent = call;
  body.textContent = answer;
  body.className = "body";
  line.append(code, body);
  element("log").querySelector(".none")?.remove();
  element("log").prepend(line);
}

/**
 * @param {string} id
 * @param {() => Promise<void>} act
 */
function onClick(id, act) {
  element(id).addEventListener("click", () => attempt(act));
}

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found;
}
