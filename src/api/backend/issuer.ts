import { toFields } from "../../base/fields.ts";
import { newId } from "../../base/id.ts";
import { invalid } from "../../base/problem.ts";
import { refinedMember } from "../../base/refined_member.ts";
import { withChange } from "../../base/shape.ts";
import { IssuerChange, IssuerRecord, NewIssuer, toIssuerRecord } from "../../oauth/issuer.ts";
import type { Services } from "../../services.ts";
import { deletePrincipalsOf, ISSUERS } from "../../store/issuers.ts";
import { endSubscriptions } from "../../store/subscription_end.ts";
import {
  type Administration,
  changeAudited,
  changeFresh,
  found,
  locatedResponse,
  storeAudited,
} from "../administration.ts";
import { fetchKeys, ISSUER_LIMITS } from "../issuer_keys.ts";
import { backend, type Operation } from "../operation.ts";
import { listing } from "../pagination.ts";
import { checkGivesBackend } from "../recent_login.ts";

const PATH = "/backend/issuer";
const ITEM = `${PATH}/:id` as const;

type IssuerServices = Administration & Pick<Services, "issuer" | "fetchDocument">;

/** /backend/issuer: other authorization servers, whose access tokens are accepted. */
export function issuerOperations(services: IssuerServices): Operation[] {
  const { database, now } = services;
  const find = async (id: string) => found(await ISSUERS.find(database, id), "issuer");

  return [
    backend("POST", PATH, "addIssuer", "Accept the access tokens of another issuer", {
      body: refinedMember(NewIssuer, "issuer", (issuer, report) => {
        if (issuer === services.issuer) report("Must not be this service.");
      }),
      responses: { 201: IssuerRecord },
      refuses: [409],
      async handle({ body, ...context }) {
        await checkGivesBackend(context.caller, body, undefined, services);
        const jwksUri = await findKeys(body.issuer, body.jwks_uri, services);
        const createdAtMs = now();
        const id = newId("i", createdAtMs);
        const made = { id, jwksUri, status: "active", createdAtMs } as const;
        const issuer = { ...toFields(body), audience: body.audience ?? null, ...made };
        const taken = "The issuer is registered already.";
        await storeAudited(context, "issuer.create", id, [ISSUERS.insert(issuer)], services, taken);
        return locatedResponse(201, context.request.path, id, toIssuerRecord(issuer));
      },
    }),
    backend("GET", PATH, "listIssuers", "List the issuers whose tokens are accepted",
      listing(database, ISSUERS, IssuerRecord, toIssuerRecord)),
    backend("GET", ITEM, "getIssuer", "One issuer", {
      returns: IssuerRecord,
      handle: async ({ params: { id } }) => toIssuerRecord(await find(id)),
    }),
    backend("PATCH", ITEM, "changeIssuer", "Change an issuer, or disable it", {
      body: IssuerChange,
      returns: IssuerRecord,
      refuses: [409],
      async handle({ params: { id }, body, ...context }) {
        const jwksUri = body.jwks_uri === undefined
          ? undefined
          : await findKeys((await find(id)).issuer, body.jwks_uri, services);
        // Other keys, or another audience, claim or type, mean that other tokens are accepted.
        const isOfOthers = Object.keys(body).some((name) => name !== "scopes" && name !== "status");
        const stored = await changeFresh(async () => {
          const issuer = await find(id);
          const changed = withChange(issuer, { ...toFields(body), jwksUri });
          const before = isOfOthers ? undefined : issuer;
          await checkGivesBackend(context.caller, changed, before, services);
          const scopes = issuer.scopes.filter((scope) => !changed.scopes.includes(scope));
          const end = changed.status === "disabled" ? { reason: "issuer disabled" }
            : scopes.length > 0 ? { reason: "scope removed", scopes } : undefined;
          await changeAudited(context, "issuer.change", id, [
            ISSUERS.update(issuer, changed),
            ...end ? endSubscriptions({ app: id }, end, now()) : [],
          ], services);
          return changed;
        });
        return toIssuerRecord(stored);
      },
    }),
    backend("DELETE", ITEM, "deleteIssuer", "Remove an issuer, and its principals", {
      async handle({ params, ...context }) {
        const { id } = await find(params.id);
        const end = { reason: "issuer deleted", deletes: true };
        await deletePrincipalsOf(database, id);
        await changeAudited(context, "issuer.delete", id, [
          ISSUERS.remove(id),
          ...endSubscriptions({ app: id }, end, now()),
        ], services);
      },
    }),
  ];
}

/**
 * Returns the URL of an issuer's keys: the given one, or the one in its metadata (RFC 8414 §3, or
 * OpenID Connect Discovery §4). Throws Problem 400 if no usable key can be fetched there.
 */
async function findKeys(
  issuer: string,
  given: string | null | undefined,
  services: Pick<Services, "fetchDocument">,
): Promise<string> {
  const uri = given ?? await discover(issuer, services);
  const fetched = await fetchKeys(uri, services);
  const none = "keys" in fetched && fetched.keys.size === 0 && "it has no usable key";
  const reason = "reason" in fetched ? fetched.reason : none;
  if (reason) throw refuse("/jwks_uri", `No keys at ${uri}: ${reason}.`);
  return uri;
}

async function discover(
  issuer: string,
  { fetchDocument }: Pick<Services, "fetchDocument">,
): Promise<string> {
  const { origin, pathname } = new URL(issuer);
  const addresses = [
    `${origin}/.well-known/oauth-authorization-server${pathname.replace(/\/$/, "")}`,
    `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`,
  ];
  const reasons: string[] = [];
  for (const address of addresses) {
    const fetched = await fetchDocument(address, ISSUER_LIMITS);
    const { issuer: named, jwks_uri: uri } = "document" in fetched ? fetched.document : {};
    if (named === issuer && typeof uri === "string") return uri;
    const other = named === issuer ? "it names no jwks_uri" : "it names another issuer";
    reasons.push(`${address}: ${"reason" in fetched ? fetched.reason : other}`);
  }
  throw refuse("/issuer", `No metadata; give a jwks_uri, or fix this: ${reasons.join("; ")}.`);
}

const refuse = (pointer: string, detail: string) => invalid([{ pointer, detail }], "body");
