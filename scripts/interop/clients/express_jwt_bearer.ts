import type { Client, ClientPackage, Members } from "../client.ts";
import type { PackageLoader } from "../packages.ts";
import type { Stage } from "../stage.ts";

/** The part of express-oauth2-jwt-bearer 1 that is used here. */
interface JwtBearer {
  auth(options: {
    readonly issuerBaseURL: string;
    readonly audience: string;
    /** RFC 9068's `typ` and claims. */
    readonly strict: boolean;
  }): Middleware;
}

type Middleware = (
  request: ApiRequest,
  response: object,
  next: (error?: unknown) => void,
) => Promise<void>;

/** The members of an Express request that it reads. */
interface ApiRequest {
  readonly headers: { readonly authorization: string };
  readonly protocol: string;
  readonly url: string;
  readonly query: object;
  readonly method: string;
  get(header: string): string | undefined;
  is(type: string): false;
  /** Set by the middleware. */
  auth?: { readonly payload: Members };
}

const NAME = "express-oauth2-jwt-bearer";

export const EXPRESS_JWT_BEARER: ClientPackage = { name: NAME, major: 1, open };

function open(load: PackageLoader, { issuer }: Stage): Client {
  const { auth } = load<JwtBearer>(NAME);
  return {
    auth: [],
    async verify(accessToken, audience) {
      const request: ApiRequest = {
        headers: { authorization: `Bearer ${accessToken}` },
        protocol: "https",
        url: "/orders",
        query: {},
        method: "GET",
        get: (header) => header === "Host" ? "api.example" : undefined,
        is: () => false,
      };
      await new Promise<void>((resolve, reject) => {
        const middleware = auth({ issuerBaseURL: issuer, audience, strict: true });
        middleware(request, {}, (error) => error ? reject(error) : resolve()).catch(reject);
      });
      return request.auth?.payload ?? {};
    },
  };
}
