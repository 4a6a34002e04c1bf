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
 * Everything that the parts of the service work with. A function names what it needs of it:
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
  /** The app of the pages with scripts; undefined where nobody logs in here. */
  readonly consoleApp: App | undefined;
  readonly consoleAssets: () => ConsoleAssets;
  /** Where the console is served, without its path; undefined: nowhere. */
  readonly consoleUrl: string | undefined;
  /** Every scope that means something here, and those that have words. */
  readonly scopes: readonly string[];
  readonly scopeWords: ReadonlyMap<string, ScopeWords>;

  /** The events that endpoint modules declare. */
  readonly events: readonly DeclaredEvent[];
  /** The receivers of callbacks to try things with, where there are any. */
  readonly receivers: Receivers | undefined;
  /** Why a well-formed address is never called back, or undefined. */
  readonly refuseEndpoint: (url: URL) => string | undefined;
  /** Lets the distributor look for work at once; without it, it does so at its next interval. */
  readonly wake: () => void;
  /** Has deliveries of this process told as they change, to one listener or to none. */
  readonly watchDeliveries: (told: WatchDeliveries | undefined) => void;
  readonly jobs: Pick<Jobs, "listCronjobs" | "runCronjob">;

  readonly metrics: ServiceMetrics;
  /** All metrics in Prometheus' text format. */
  readonly formatMetrics: () => Promise<string>;
  /** What in the set-up is allowed and risky, a line each. */
  readonly warnings: readonly string[];
  readonly readiness: (withParts: boolean) => Promise<Readiness>;
}
