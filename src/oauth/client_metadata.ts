import { hostOf } from "../base/base_url.ts";
import { listOf, optional, oneOf, record, TEXT, text } from "../base/shape.ts";
import { type App, NAME, newApp } from "./app.ts";
import { isListedRedirectUri, parseAppUrl } from "./redirect_uri.ts";

/** The hosts from which client documents are accepted: all, none, or a list. */
export type DocumentHosts = "on" | "off" | readonly string[];

/** How a client describes itself (draft-ietf-oauth-client-id-metadata-document-02). */
export type ClientDocument = Pick<App, "name" | "redirectUris">;
type ParsedDocument = ClientDocument | { readonly reason: string };

/** Secrets and private keys must not stand in a public document (section 4 of the draft). */
const REFUSED = optional(text(() => "Must not be present."));

const Document = record({
  client_id: TEXT,
  client_name: optional(NAME),
  redirect_uris: listOf(TEXT),
  token_endpoint_auth_method: optional(oneOf("none")),
  client_secret: REFUSED,
  client_secret_expires_at: REFUSED,
  jwks: optional(record({ keys: listOf(record({ k: REFUSED, d: REFUSED })) })),
});

/** Whether a client_id is a document's URL: an app URL with a path (section 3 of the draft). */
export function isDocumentUrl(clientId: string, hosts: DocumentHosts): boolean {
  const url = hosts === "off" ? undefined : parseAppUrl(clientId);
  if (url === undefined || url.pathname === "/") return false;
  return hosts === "on" || hosts.includes(hostOf(url));
}

/** Returns what the document at a URL says (RFC 7591 §2), or the reason why it is refused. */
export function parseClientDocument(url: string, value: unknown): ParsedDocument {
  const wrong: string[] = [];
  const document = Document.parse(value, (detail, at = "") => wrong.push(`${at} ${detail}`.trim()));
  if (wrong.length > 0) return { reason: wrong.join(" ") };
  const { client_id: clientId, client_name: name = new URL(url).host } = document;
  if (clientId !== url) return { reason: "Its client_id is not its own URL." };
  const redirectUris = document.redirect_uris.filter((uri) => isListedRedirectUri(uri, [uri]));
  return redirectUris.length > 0 ? { name, redirectUris } : { reason: "It has no redirect URI." };
}

/** Returns the app that a document describes; `known` is the app as stored, if it is. */
export function appOfDocument(
  metadataUrl: string,
  { name, redirectUris }: ClientDocument,
  known: App | undefined,
  { scopes, ...made }: Pick<App, "id" | "createdAtMs" | "scopes">,
): App {
  const { origin: url } = new URL(metadataUrl);
  const app = known ?? newApp({ name, url, type: "public", scopes }, made);
  return { ...app, name, redirectUris, scopes, metadataUrl };
}
