import type { AppLogin, Client, ClientPackage, Members, Tokens } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of passport-oauth2 1 that is used here. */
type Passport = new (options: object, verify: Verify) => Strategy;

type Verify = (
  accessToken: string,
  refreshToken: string | undefined,
  parameters: { readonly scope?: string },
  profile: object,
  done: (error: unknown, user: Tokens) => void,
) => void;

interface Strategy {
  authenticate(request: LoginRequest, options: object): void;
  /** For strategies that build upon it: requests with the tokens that it got. */
  readonly _oauth2: {
    useAuthorizationHeaderforGET(use: boolean): void;
    get(url: string, accessToken: string, done: (error: unknown, body: string) => void): void;
    getOAuthAccessToken(refreshToken: string, parameters: object, done: TokenCallback): void;
  };
}

type TokenCallback = (
  error: unknown,
  accessToken: string,
  refreshToken: string | undefined,
  parameters: { readonly scope?: string },
) => void;

/** The members of a request that it reads, and those that passport adds. */
interface LoginRequest {
  readonly query: Readonly<Record<string, string>>;
  /** Kept between the two requests: state and code verifier. */
  readonly session: object;
}

export const PASSPORT_OAUTH2: ClientPackage = { name: "passport-oauth2", major: 1, open };

function open(load: PackageLoader, stage: Stage): Client {
  const OAuth2Strategy = load<Passport>("passport-oauth2");

  function configure({ id, secret }: AppLogin): Strategy {
    const options = {
      authorizationURL: stage.endpoint("authorize"),
      tokenURL: stage.endpoint("token"),
      clientID: id,
      clientSecret: secret,
      callbackURL: stage.redirectUri,
      state: true,
      pkce: true,
    };
    return new OAuth2Strategy(options, (accessToken, refreshToken, { scope }, _, done) => {
      done(null, { accessToken, refreshToken, scope });
    });
  }

  return {
    auth: ["body", "none"],
    async code(app, scope) {
      const strategy = configure(app);
      const session = {};
      const address = await authenticate(strategy, { query: {}, session }, scope);
      if (typeof address !== "string") throw new Error("no redirect to the server");
      const query = Object.fromEntries((await stage.visit(address)).searchParams);
      const tokens = await authenticate(strategy, { query, session }, scope);
      if (typeof tokens === "string") throw new Error("no tokens");
      return tokens;
    },
    refresh: (app, token, scope) =>
      new Promise((resolve, reject) => {
        const parameters = { grant_type: "refresh_token", ...(scope && { scope }) };
        configure(app)._oauth2.getOAuthAccessToken(
          token,
          parameters,
          (error, accessToken, refreshToken, more) =>
            error ? reject(error) : resolve({ accessToken, refreshToken, scope: more.scope }),
        );
      }),
    request: (url, accessToken) =>
      new Promise((resolve, reject) => {
        const { _oauth2: oauth } = configure(stage.app("body"));
        oauth.useAuthorizationHeaderforGET(true);
        oauth.get(url, accessToken, (error, body) => {
          if (error) return reject(error);
          const members: Members = JSON.parse(body);
          resolve(members);
        });
      }),
  };
}

/** Runs a strategy as passport does; resolves with the redirect's address or with the tokens. */
function authenticate(
  strategy: Strategy,
  request: LoginRequest,
  scope: string,
): Promise<string | Tokens> {
  return new Promise((resolve, reject) => {
    const running: Strategy = Object.assign(Object.create(strategy), {
      redirect: (url: string) => resolve(url),
      success: (user: Tokens) => resolve(user),
      fail: reject,
      error: reject,
    });
    running.authenticate(request, { scope });
  });
}
