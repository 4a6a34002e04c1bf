import type { BrowserSessions } from "./api/authorization/browser_session.ts";
import type { ClientAuthenticator } from "./api/authorization/client.ts";
import type { ClientDocuments } from "./api/authorization/client_documents.ts";
import type { TokenIssuer } from "./api/authorization/token_issuer.ts";
import type { Receivers } from "./api/backend/receiver.ts";
import type { Bearer } from "./api/bearer.ts";
import type { IssuerTokens } from "./api/issuer_tokens.ts";
import type { ConsoleAssets } from "./api/pages/console_page.ts";
import type { Site } from "./api/pages/page_layout.ts";
import type { PasswordLogin } from "./api/password_login.ts";
import type { CheckInspector, Readiness } from "./api/system/status.ts";
import type { Jobs } from "./app/jobs.ts";
import type { ServiceMetrics } from "./app/metrics.ts";
import type { Log } from "./base/log.ts";
import type { PasswordHasher } from "./base/password.ts";
import type { Seal } from "./base/seal.ts";
import type { Config } from "./config.ts";
import type { Database } from "./database/database.ts";
import type { OpenDatabase } from "./database/engine.ts";
import type { WatchDeliveries } from "./event/delivery_record.ts";
import type { DeclaredEvent } from "./event/event.ts";
import type { App } from "./oauth/app.ts";
import type { ScopeWords } from "./oauth/scope.ts";
import type { DocumentFetch } from "./outbound/fetch_document.ts";
import type { Accounts } from "./store/accounts.ts";
import type { FailureAudit } from "./store/failure_audit.ts";
import type { FigureCounter } from "./store/figures.ts";
import type { KeyRing } from "./store/key_ring.ts";
import type { Rates } from "./store/rates.ts";
import type { Revocations } from "./store/revocations.ts";
import type { createUses } from "./store/uses.ts";

/**
 * Everything that the parts of the service use. A function declares what it needs, as in
 * `Pick<Services, "database" | "now">`.
 */
export interface Services {
  readonly config: Config;
  readonly log: Log;
  readonly now: () => number;

  readonly database: Database;
  readonly heavy: OpenDatabase["heavy"];
  readonly backUpAs: OpenDatabase["backUpAs"];
  readonly disk: OpenDatabase["disk"];
  readonly cluster: OpenDatabase["cluster"];
  readonly seal: Seal;
  readonly accounts: Accounts;
  readonly revocations: Revocations;
  readonly uses: ReturnType<typeof createUses>;
  readonly figures: FigureCounter;
  readonly rates: Rates;
  readonly keys: KeyRing;
  readonly failures: FailureAudit;

  /** The base URL: the `iss` of tokens. */
  readonly issuer: string;
  readonly site: Site;
  readonly hasher: PasswordHasher;
  readonly passwordLogin: PasswordLogin;
  readonly clients: ClientAuthenticator;
  readonly documents: ClientDocuments;
  readonly tokens: TokenIssuer;
  readonly bearer: Bearer;
  readonly issuerTokens: IssuerTokens;
  readonly fetchDocument: DocumentFetch;
  readonly checkInspector: CheckInspector;
  readonly sessions: BrowserSessions;
  /** The app of the pages with scripts; undefined without the authorization server. */
  readonly consoleApp: App | undefined;
  readonly consoleAssets: () => ConsoleAssets;
  /** The base URL of the console, without /console; undefined if it is not served. */
  readonly consoleUrl: string | undefined;
  /** All scopes that an operation needs, and the descriptions of those that have one. */
  readonly scopes: readonly string[];
  readonly scopeWords: ReadonlyMap<string, ScopeWords>;

  /** The events that endpoint modules declare. */
  readonly events: readonly DeclaredEvent[];
  /** The built-in receivers, to which callbacks can be sent for a trial; undefined if off. */
  readonly receivers: Receivers | undefined;
  /** Returns why callbacks never go to a well-formed URL, or undefined. */
  readonly refuseEndpoint: (url: URL) => string | undefined;
  /** Lets the distributor look for work at once instead of at its next interval. */
  readonly wake: () => void;
  /** Sets the one listener for changed deliveries of this process, or removes it. */
  readonly watchDeliveries: (told: WatchDeliveries | undefined) => void;
  readonly jobs: Pick<Jobs, "listCronjobs" | "runCronjob">;

  readonly metrics: ServiceMetrics;
  /** All metrics in Prometheus' text format. */
  readonly formatMetrics: () => Promise<string>;
  /** What is allowed but risky in the configuration, a line each. */
  readonly warnings: readonly string[];
  readonly readiness: (withParts: boolean) => Promise<Readiness>;
}
