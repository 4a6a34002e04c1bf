import type { webcrypto } from "node:crypto";
import type { PackageLoader } from "./packages.ts";
import type { Stage } from "./stage.ts";

/** How an app authenticates: in the header or the body (RFC 6749 §2.3.1), or not (public app). */
export type ClientAuth = "basic" | "body" | "none";

/** An app, and how it authenticates. */
export interface AppLogin {
  readonly id: string;
  /** "" for a public app. */
  readonly secret: string;
  readonly auth: ClientAuth;
}

/** An app that authenticates with its key: private_key_jwt (RFC 7523 §2.2). */
export interface KeyedApp {
  readonly id: string;
  readonly kid: string;
  readonly key: webcrypto.CryptoKey;
}

/** A token response as a client understood it. */
export interface Tokens {
  readonly accessToken: string;
  readonly refreshToken: string | undefined;
  /** Separated by spaces; undefined if the client does not report it. */
  readonly scope: string | undefined;
}

/** Has the user go to an address and decide there. */
export type SendUser = (address: string) => Promise<unknown>;

/** What a trial may do to the address that the app is called back at. */
export type ChangeCallback = (callback: URL) => void;

/**
 * A client library, ready for the server of one stage. Methods that it does not support are left
 * out. If the server or the client itself refuses, the promise is rejected.
 */
export interface Client {
  /** The ways to authenticate an app that it supports. */
  readonly auth: readonly ClientAuth[];
  /** True if it checks `iss` in authorization responses (RFC 9207). */
  readonly checksIss?: boolean;
  /** Finds the server's metadata by the issuer alone (RFC 8414); returns the issuer it holds. */
  discover?(): Promise<string>;
  /** Goes from a protected resource to its authorization servers (RFC 9728). */
  findServers?(): Promise<readonly string[]>;
  credentials?(app: AppLogin, scope: string): Promise<Tokens>;
  keyedCredentials?(app: KeyedApp, scope: string): Promise<Tokens>;
  /** The code grant with PKCE and `state`, through the server's pages. */
  code?(app: AppLogin, scope: string, change?: ChangeCallback): Promise<Tokens>;
  /** The device grant; `send` gets the address with the code. */
  device?(app: AppLogin, scope: string, send: SendUser): Promise<Tokens>;
  /** The code grant for an unregistered app: its metadata document and a protected URL suffice. */
  unregistered?(documentUrl: string, scope: string): Promise<Tokens>;
  password?(app: AppLogin, username: string, password: string, scope: string): Promise<Tokens>;
  /** Without `scope` the client sends none. */
  refresh?(app: AppLogin, refreshToken: string, scope?: string): Promise<Tokens>;
  revoke?(app: AppLogin, token: string, hint: "access_token" | "refresh_token"): Promise<void>;
  introspect?(app: AppLogin, token: string): Promise<Members>;
  /** GET of a protected resource with the token; rejects unless it returns JSON. */
  request?(url: string, accessToken: string): Promise<Members>;
  /** Checks an access token as a resource server does (RFC 9068 §4); returns its claims. */
  verify?(accessToken: string, audience: string): Promise<Members>;
  /** Checks a callback's signature (Standard Webhooks); returns its data. */
  verifyCallback?(secret: string, body: string, headers: CallbackHeaders): Promise<unknown>;
}

/** A JSON object. */
export type Members = Readonly<Record<string, unknown>>;

export type CallbackHeaders = Readonly<Record<string, string>>;

/** A client library and its adapter. */
export interface ClientPackage {
  readonly name: string;
  /** The major version that this adapter is written for. */
  readonly major: number;
  open(load: PackageLoader, stage: Stage): Client;
}
