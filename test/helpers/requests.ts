import { hash, randomBytes } from "node:crypto";
import type { TestApp } from "./gatepost.ts";

let addresses = 0;

/** Returns an address that no request has come from before. */
export function newAddress(): string {
  addresses++;
  return `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
}

/** Returns a name that has not been used before. */
export function newName(prefix: string): string {
  return `${prefix}-${randomBytes(6).toString("hex")}`;
}

export function bearer(token: string): { readonly authorization: string } {
  return { authorization: `Bearer ${token}` };
}

/** HTTP Basic of an app's id and secret (RFC 6749 §2.3.1). */
export function basicAuth({ id, secret }: Pick<TestApp, "id" | "secret">) {
  return { authorization: `Basic ${Buffer.from(`${id}:${secret}`).toString("base64")}` };
}

/** A new PKCE pair, as the parameters of both requests (RFC 7636 §4). */
export function newPkce() {
  const verifier = randomBytes(32).toString("base64url");
  return {
    verifier: { code_verifier: verifier },
    challenge: {
      code_challenge: hash("sha256", verifier, "base64url"),
      code_challenge_method: "S256",
    },
  };
}

/** The authorize page's path with the app's id and redirect URI; an empty value omits one. */
export function authorizePath(
  app: TestApp,
  parameters: Readonly<Record<string, string>> = {},
): string {
  const query = new URLSearchParams({
    client_id: app.id,
    redirect_uri: app.redirectUri,
    ...parameters,
  });
  return `/authorization/authorize?${query}`;
}
