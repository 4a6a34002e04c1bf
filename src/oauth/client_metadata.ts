import { hostOf } from "../base/base_url.ts";
import { listOf, optional, oneOf, record, TEXT, text } from "../base/shape.ts";
import { type App, NAME, newApp } from "./app.ts";
import { isListedRedirectUri, parseAppUrl } from "./redirect_uri.ts";

/** Of which hosts documents are taken: of all, of none, or of these. */
export type DocumentHosts = "on" | "off" | readonly string[];

/** What a client says of itself (draft-ietf-oauth-client-id-metadata-document-02). */
export type ClientDocument = Pick<App, "name" | "redirectUris">;
type ParsedDocument = ClientDocument | { readonly reason: string };

/** There is no way to share a secret, and nobody else may have a private key (its section 4). */
const REFUSED = optional(text(() => "Must not be there."));

const Document = record({
  client_id: TEXT,
  client_name: optional(NAME),
  redirect_uris: listOf(TEXT),
  token_endpoint_auth_method: optional(oneOf("none")),
  client_secret: REFUSED,
  client_secret_expires_at: REFUSED,
  jwks: optional(record({ keys: listOf(record({ k: REFUSED, d: REFUSED })) })),
});

/** Whether a client_id is the URL of a document: as an app URL is, with a path (its section 3). */
export function isDocumentUrl(clientId: string, hosts: DocumentHosts): boolean {
  const url = hosts === "off" ? undefined : parseAppUrl(clientId);
  if (url === undefined || url.pathname === "/") return false;
  return hosts === "on" || hosts.includes(hostOf(url));
}

/** What the document at a URL says (RFC 7591 §2), or why it is not taken. */
export function parseClientDocument(url: string, value: unknown): ParsedDocument {
  const wrong: string[] = [];
  const document = Document.parse(value, (detail, at = "") => wrong.push(`${at} ${detail}`.trim()));
  if (wrong.length > 0) return { reason: wrong.join(" ") };
  const { client_id: clientId, client_name: name = new URL(url).host } = document;
  if (clientId !== url) return { reason: "Its client_id is not its own URL." };
  const redirectUris = document.redirect_uris.filter((uri) => isListedRedirectUri(uri, [uri]));
  return redirectUris.length > 0 ? { name, redirectUris } : { reason: "It has no redirect URI." };
}

/** The app that a document at a URL makes, with these scopes; `known` is what is stored of it. */
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
