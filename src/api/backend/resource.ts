import { newId } from "../../base/id.ts";
import { refinedMember } from "../../base/refined_member.ts";
import { withChange } from "../../base/shape.ts";
import {
  isOwnResource,
  NewResource,
  ResourceChange,
  ResourceRecord,
  toResourceRecord,
} from "../../oauth/resource.ts";
import type { Services } from "../../services.ts";
import { findResource, RESOURCES } from "../../store/resources.ts";
import {
  type Administration,
  changeAudited,
  changeFresh,
  found,
  locatedResponse,
  storeAudited,
} from "../administration.ts";
import { backend, type Operation } from "../operation.ts";
import { listing } from "../pagination.ts";

const PATH = "/backend/resource";
const ITEM = `${PATH}/:id` as const;

/** /backend/resource: services beside this one for which tokens are issued. */
export function resourceOperations(
  services: Administration & Pick<Services, "issuer">,
): Operation[] {
  const { database, issuer, now } = services;
  const find = async (id: string) => found(await findResource(database, id), "resource");

  return [
    backend("POST", PATH, "addResource", "Register a resource that tokens are issued for", {
      body: refinedMember(NewResource, "url", (url, report) => {
        if (isOwnResource(url, issuer)) report("Must not be this service.");
      }),
      responses: { 201: ResourceRecord },
      refuses: [409],
      async handle({ body, ...context }) {
        const createdAtMs = now();
        const id = newId("p", createdAtMs);
        const resource = { ...body, id, createdAtMs };
        const insert = RESOURCES.insert(resource);
        const taken = "There is a resource with this url already.";
        await storeAudited(context, "resource.create", id, [insert], services, taken);
        return locatedResponse(201, context.request.path, id, toResourceRecord(resource));
      },
    }),
    backend("GET", PATH, "listResources", "List registered resources",
      listing(database, RESOURCES, ResourceRecord, toResourceRecord)),
    backend("GET", ITEM, "getResource", "One registered resource", {
      returns: ResourceRecord,
      handle: async ({ params }) => toResourceRecord(await find(params.id)),
    }),
    backend("PATCH", ITEM, "changeResource", "Change the scopes of a resource", {
      body: ResourceChange,
      returns: ResourceRecord,
      refuses: [409],
      handle: ({ params, body, ...context }) => changeFresh(async () => {
        const resource = await find(params.id);
        const changed = withChange(resource, body);
        const update = RESOURCES.update(resource, changed);
        await changeAudited(context, "resource.change", resource.id, [update], services);
        return toResourceRecord(changed);
      }),
    }),
    backend("DELETE", ITEM, "deleteResource", "Remove a resource, and end the grants for it", {
      handle: ({ params: { id }, ...context }) =>
        changeAudited(context, "resource.delete", id, [RESOURCES.remove(id)], services),
    }),
  ];
}
