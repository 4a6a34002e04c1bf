import type { HttpRequest } from "../../base/exchange.ts";
import { equalText, hmac, newSecret, sha256 } from "../../base/secret.ts";
import { isLoopbackHost } from "../../oauth/redirect_uri.ts";
import { insertAudit } from "../../store/audit.ts";
import type { Database } from "../../store/database.ts";
import { deleteSession, findSessionUser, insertSession } from "../../store/sessions.ts";

const SESSION_MS = 12 * 60 * 60_000;

/** A browser that shows our pages: its cookie, and who is logged in with it. */
export interface BrowserSession {
  /** The cookie's value; it is stored, as a hash, only once somebody has logged in with it. */
  readonly id: string;
  /** Whether the browser sent it, or has yet to be given it. */
  readonly isNew: boolean;
  readonly userId: string | undefined;
}

/** A password that was right. */
export interface BrowserLogin {
  readonly userId: string;
  /** When its check began: a session that was cut off since is not revived by it. */
  readonly sinceMs: number;
  readonly address: string;
}

/** Keeps browsers apart and forms from being forged. */
export interface BrowserSessions {
  open(request: HttpRequest): Promise<BrowserSession>;
  /** Logs a user in under a new id (no fixation); answers with the Set-Cookie value. */
  logIn(session: BrowserSession, login: BrowserLogin): Promise<string>;
  /** Ends a session and answers with the anonymous one that takes its place. */
  logOut(session: BrowserSession): Promise<BrowserSession>;
  /** The Set-Cookie value that gives a browser its id; nothing is stored for it. */
  cookie(session: BrowserSession): string;
  /** The token of one form: of this session, this step and this very request. */
  formToken(session: BrowserSession, step: string): string;
  checkFormToken(session: BrowserSession, step: string, token: string | undefined): boolean;
  /** Whether a form was sent by one of our own pages, as far as the browser says (Fetch Metadata). */
  isOwnForm(request: HttpRequest): boolean;
}

/** What sessions are made with. */
export interface BrowserSessionOptions {
  readonly database: Database;
  readonly issuer: string;
  readonly pageKey: Uint8Array;
  readonly now: () => number;
}

/** Makes the keeper of browser sessions. */
export function createBrowserSessions(options: BrowserSessionOptions): BrowserSessions {
  const { database, pageKey, now } = options;
  const { origin, protocol, hostname } = new URL(options.issuer);
  const isSecure = protocol === "https:";
  // The prefix keeps other hosts of the domain, and plain http, from planting one (RFC 6265bis §4.1.3).
  const name = isSecure ? "__Host-gatepost" : "gatepost";
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  // Browsers send Sec-Fetch-Site to such origins alone.
  const isTrustworthy = isSecure || isLoopbackHost(hostname);

  function formToken(session: BrowserSession, step: string): string {
    return hmac(pageKey, `form ${session.id} ${step}`);
  }

  function anonymousSession(): BrowserSession {
    return { id: newSecret(), isNew: true, userId: undefined };
  }

  return {
    async open({ headers }) {
      const sent = readCookie(headers.cookie, name);
      if (sent === undefined) return anonymousSession();
      const userId = await findSessionUser(database, sha256(sent), now());
      return { id: sent, isNew: false, userId };
    },
    async logIn(session, { userId, sinceMs, address }) {
      const id = newSecret();
      await database.write([
        deleteSession(sha256(session.id)),
        insertSession(sha256(id), userId, sinceMs, now() + SESSION_MS),
        insertAudit({ actor: userId, action: "user.login", target: userId, address }, now()),
      ]);
      return `${name}=${id}; Max-Age=${SESSION_MS / 1000}; ${attributes}`;
    },
    async logOut(session) {
      if (session.userId !== undefined) await database.write([deleteSession(sha256(session.id))]);
      return anonymousSession();
    },
    cookie: ({ id }) => `${name}=${id}; ${attributes}`,
    formToken,
    checkFormToken: (session, step, token) =>
      token !== undefined && equalText(token, formToken(session, step)),
    isOwnForm({ headers }) {
      const site = headers["sec-fetch-site"];
      if (site !== undefined && site !== "same-origin") return false;
      if (headers.origin === undefined || headers.origin === origin) return true;
      // Referrer-Policy: no-referrer makes browsers say "null" for our own forms, too.
      return headers.origin === "null" && (site === "same-origin" || !isTrustworthy);
    },
  };
}

/**
 * Whether a request can be a window that goes to another address, and not a script's `fetch` or a
 * frame (Fetch Metadata §2.1). Clients that are no browsers do not send the header.
 */
export function isNavigation({ headers }: Pick<HttpRequest, "headers">): boolean {
  return (headers["sec-fetch-dest"] ?? "document") === "document";
}

/** The value of one of our cookies, where the browser sent exactly one that we could have made. */
function readCookie(header: string | undefined, name: string): string | undefined {
  const values = (header ?? "").split(";").map((pair) => pair.trim())
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1));
  const [value] = values;
  return values.length === 1 && value !== undefined && /^[\w-]{43}$/.test(value) ? value : undefined;
}
