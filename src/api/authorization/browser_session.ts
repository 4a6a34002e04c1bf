import type { HttpRequest } from "../../base/http_message.ts";
import { idBound, newId } from "../../base/id.ts";
import { createHmacSha256, equalText, newSecret, sha256 } from "../../base/secret.ts";
import type { Sql } from "../../database/sql.ts";
import { isLoopbackHost } from "../../oauth/redirect_uri.ts";
import { insertAudit } from "../../store/audit.ts";
import type { GivenPassword, User } from "../../oauth/user.ts";
import type { Services } from "../../services.ts";
import {
  deleteSession,
  endSessionsOf,
  findSession,
  insertSession,
  isLive,
  markSeen,
  sessionId,
} from "../../store/sessions.ts";
import { findUser } from "../../store/users.ts";
import { isWithin, RECENT_LOGIN_MS } from "../recent_login.ts";

const SESSION_MS = 12 * 60 * 60_000;
/** The least time between two updates of a session's `seenAtMs`. */
const SEEN_MS = 5 * 60_000;
const DEVICE_MS = 180 * 86_400_000;
/** How many users one browser's device cookie remembers: those who logged in last. */
const MAX_DEVICES = 4;
const DEVICES = /^\w{25}\.[\w-]{43}(?:~\w{25}\.[\w-]{43}){0,3}$/;

/** A browser that shows our pages: its cookie, and who is logged in with it. */
export interface BrowserSession {
  /** The cookie's value. */
  readonly id: string;
  /** The SHA-256 of `id`, which is stored once a user has logged in. */
  readonly hash: Uint8Array;
  /** Whether the browser has not sent the cookie and must still be given it. */
  readonly isNew: boolean;
  readonly user: User | undefined;
  /** When the user logged in. */
  readonly sinceMs: number;
  readonly givenPassword: GivenPassword | undefined;
  /** The entries of the device cookie, not yet verified. */
  readonly devices: readonly string[];
}

type Sender = Pick<HttpRequest, "address" | "headers">;

/** Keeps the sessions of browsers, and protects forms against CSRF. */
export type BrowserSessions = ReturnType<typeof createBrowserSessions>;

/** Makes browser sessions; all processes on a database share its `pageKey`, and so the sessions. */
export function createBrowserSessions(
  { database, revocations, issuer, pageKey, now }:
    & Pick<Services, "database" | "revocations" | "issuer" | "now">
    & { readonly pageKey: Uint8Array },
) {
  const hmac = createHmacSha256(pageKey);
  const { origin, protocol, hostname } = new URL(issuer);
  const isSecure = protocol === "https:";
  // With the prefix neither another host of the domain nor plain http can set the cookie (RFC
  // 6265bis §4.1.3). `pageKey` tells Gateposts on one host apart, since cookies ignore the port.
  const oldName = isSecure ? "__Host-gatepost" : "gatepost"; // until 0.1.0
  const name = `${oldName}-${hmac("cookie").slice(0, 8)}`;
  const deviceName = `${name}-device`;
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  // Browsers send Sec-Fetch-Site only to trustworthy origins.
  const isTrustworthy = isSecure || isLoopbackHost(hostname);

  /** Returns the CSRF token of a form, bound to the session and to `step` with its address. */
  function formToken(session: BrowserSession, step: string): string {
    return hmac(`form ${session.id} ${step}`);
  }

  function anonymousSession(): BrowserSession {
    const id = newSecret();
    const nobody = { user: undefined, sinceMs: 0, givenPassword: undefined, devices: [] };
    return { id, hash: sha256(id), isNew: true, ...nobody };
  }

  /** Makes a session with a new id (no session fixation): its statement and Set-Cookie value. */
  function newSession(user: string, sinceMs: number, { address, headers }: Sender) {
    const id = newSecret();
    const from = { address, agent: headers["user-agent"] };
    const hash = sha256(id);
    return {
      hash,
      insert: insertSession(hash, user, sinceMs, now() + SESSION_MS, from),
      cookie: `${name}=${id}; Max-Age=${SESSION_MS / 1000}; ${attributes}`,
    };
  }

  /**
   * Ends a session and stores `more` in the same batch. The tokens of the user's consoles end too,
   * unless `next`, the user who signs in now, is the same user.
   */
  async function end({ user, hash }: BrowserSession, next?: string, ...more: readonly Sql[]) {
    const signsOut = user !== undefined && user.id !== next;
    const ends =
      signsOut ? endSessionsOf(user.id, now(), { id: sessionId(hash) }) : [deleteSession(hash)];
    await database.write([...ends, ...more]);
    if (signsOut) await revocations.refresh();
  }

  // The word `device` distinguishes this signature from a form's token.
  const signDevice = (id: string, userId: string) =>
    `${id}.${hmac(`device ${userId} ${id}`)}`;

  /** Finds the user's entry in the device cookie, if it is signed by us and not too old. */
  function findEntry({ devices }: BrowserSession, userId: string): string | undefined {
    const oldest = idBound("k", now() - DEVICE_MS);
    return devices.find((entry) => {
      const [id = ""] = entry.split(".");
      return id > oldest && equalText(entry, signDevice(id, userId));
    });
  }

  return {
    newSession,
    async open({ headers, method }: HttpRequest): Promise<BrowserSession> {
      const [sent] = [name, oldName].flatMap((each) =>
        readCookie(headers.cookie, each, /^[\w-]{43}$/));
      const devices = readCookie(headers.cookie, deviceName, DEVICES)
        .flatMap((value) => value.split("~"));
      if (sent === undefined) return { ...anonymousSession(), devices };
      const hash = sha256(sent);
      const found = await findSession(database, hash, now());
      if (found && method !== "HEAD" && (found.seenAtMs ?? 0) <= now() - SEEN_MS) {
        // Not awaited, since nothing depends on it.
        void Promise.allSettled([database.write([markSeen(hash, now())])]);
      }
      const sinceMs = found?.createdAtMs ?? 0;
      const givenPassword = found?.givenPassword ?? undefined;
      // The page for a new password asks for no old one, and somebody else may sit there by now.
      const isOver = givenPassword && !isWithin(RECENT_LOGIN_MS, sinceMs, now());
      const user = found && !isOver ? await findUser(database, found.user) : undefined;
      return { id: sent, hash, isNew: false, user, sinceMs, givenPassword, devices };
    },
    /**
     * Logs a user in; returns the Set-Cookie values.
     *
     * @param sinceMs when the password check began: a later end of sessions ends this one too
     * @param uses statements of the password check; ConflictError if they refuse the login
     */
    async logIn(
      session: BrowserSession,
      userId: string,
      sinceMs: number,
      from: Sender,
      uses: readonly Sql[] = [],
    ) {
      const { hash, insert, cookie } = newSession(userId, sinceMs, from);
      const { address } = from;
      const entry = { actor: userId, action: "user.login", target: userId, address };
      const nowMs = now();
      await end(session, userId, insert, insertAudit(entry, nowMs, isLive(hash, nowMs)), ...uses);
      const own = findEntry(session, userId);
      const others = session.devices.filter((entry) => entry !== own);
      const devices = [signDevice(newId("k", now()), userId), ...others].slice(0, MAX_DEVICES);
      return [
        cookie,
        `${deviceName}=${devices.join("~")}; Max-Age=${DEVICE_MS / 1000}; ${attributes}`,
      ];
    },
    /** Returns the id of the browser's device, if the user has logged in with it before. */
    findDevice: (session: BrowserSession, userId: string) =>
      findEntry(session, userId)?.split(".")[0],
    /** Ends a session and returns the anonymous one that takes its place. */
    async logOut(session: BrowserSession, { address }: Sender): Promise<BrowserSession> {
      if (session.user) {
        const ended = { actor: session.user.id, target: sessionId(session.hash), address };
        await end(session, undefined, insertAudit({ ...ended, action: "session.end" }, now()));
      }
      return anonymousSession();
    },
    /** The Set-Cookie value that gives a browser its id; nothing is stored for it. */
    cookie: ({ id }: BrowserSession) => `${name}=${id}; ${attributes}`,
    formToken,
    checkFormToken: (session: BrowserSession, step: string, token = "") =>
      equalText(token, formToken(session, step)),
    /** Whether one of our own pages sent a form, as far as the browser says (Fetch Metadata). */
    isOwnForm({ headers }: HttpRequest): boolean {
      const site = headers["sec-fetch-site"];
      if (site !== undefined && site !== "same-origin") return false;
      if (headers.origin === undefined || headers.origin === origin) return true;
      // With Referrer-Policy: no-referrer browsers send "null" for our own forms too.
      return headers.origin === "null" && (site === "same-origin" || !isTrustworthy);
    },
  };
}

/**
 * Returns the value of a cookie in a list; empty unless the browser sent exactly one of valid form.
 * Trims only spaces and tabs: for browsers, a name behind U+00A0 lacks the prefix `__Host-`. Takes
 * quotes away, since Java's CookieManager adds them if a cookie has Max-Age (RFC 6265 §4.1.1).
 */
function readCookie(header: string | undefined, name: string, form: RegExp): string[] {
  const values = (header ?? "").split(";").map((pair) => pair.replace(/^[ \t]+/, ""))
    .filter((pair) => pair.startsWith(`${name}=`))
    .map((pair) => pair.slice(name.length + 1).replace(/^"(.*)"$/, "$1"));
  return values.length === 1 ? values.filter((value) => form.test(value)) : [];
}
