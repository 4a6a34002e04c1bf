import { type Form, parseForm } from "../../base/form.ts";
import type { HttpRequest, HttpResponse } from "../../base/http_message.ts";
import { malformed, Problem } from "../../base/problem.ts";
import { readForm } from "../../http/body.ts";
import type { Services } from "../../services.ts";
import { anyone, type Operation } from "../operation.ts";

type Described = Pick<Operation, "id" | "summary" | "form">;

/**
 * GET of a page for people, and POST of its forms. Both accept only top-level navigation, so that
 * no other page of our origin, such as a hosted one, can read or send a form.
 */
export function pageOperations(
  page: Pick<Operation, "path" | "query"> & { readonly get: Described; readonly post: Described },
  respond: (request: HttpRequest, query: Form, form?: Form) => Promise<HttpResponse>,
  { sessions }: Pick<Services, "sessions">,
): Operation[] {
  const { path, get, post, ...place } = page;
  const responses = { 200: "text/html", 303: undefined } as const;
  const base = { ...place, errors: "page", responses } as const;

  /** Refuses a script's `fetch` and frames. Only browsers send the header (Fetch Metadata §2.1). */
  function respondToNavigation(request: HttpRequest, form?: Form): Promise<HttpResponse> {
    if ((request.headers["sec-fetch-dest"] ?? "document") !== "document") {
      throw new Problem(403, "foreign_request", "The request was not made by opening a page.");
    }
    const query = parseForm(request.query);
    if (!query) throw malformed("The query is not well-formed.");
    return respond(request, query, form);
  }

  return [
    anyone("GET", path, get.id, get.summary, {
      ...base,
      handle: async ({ request }) => respondToNavigation(request),
    }),
    anyone("POST", path, post.id, post.summary, {
      ...base,
      ...post.form && { form: post.form },
      async handle({ request }) {
        if (!sessions.isOwnForm(request)) {
          throw new Problem(403, "foreign_form", "The form was not sent by this page.");
        }
        // Read before the session: the form may arrive slowly, and the session may end meanwhile.
        const form = await readForm(request);
        if (!form || form.duplicates.length > 0) throw malformed("The form is not well-formed.");
        return respondToNavigation(request, form);
      },
    }),
  ];
}
