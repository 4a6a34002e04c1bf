import type { Form } from "../../base/form.ts";
import type { App } from "../../oauth/app.ts";
import type { HttpRequest } from "../../base/http_message.ts";
import type { Accounts } from "../../store/accounts.ts";
import type { Database } from "../../database/database.ts";
import type { Revocations } from "../../store/revocations.ts";
import type { PasswordLogin } from "../password_login.ts";
import type { TokenIssuer } from "./token_issuer.ts";

/** What the four exchanges work with. */
export interface ExchangeServices {
  readonly database: Database;
  readonly accounts: Accounts;
  readonly tokens: TokenIssuer;
  readonly revocations: Revocations;
  readonly passwordLogin: PasswordLogin;
  readonly now: () => number;
}

/** One proven app's request for tokens, with its form read. */
export interface ExchangeRequest {
  readonly app: App;
  readonly form: Form;
  readonly request: HttpRequest;
}

/** What an exchange ends with: stored already, ready to be answered. */
export interface IssuedTokens {
  readonly accessToken: string;
  readonly expiresInSeconds: number;
  readonly refreshToken: string | undefined;
  readonly scopes: readonly string[];
}
