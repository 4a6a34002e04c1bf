import { authored, parsedBy, readAs, that } from "../base/authored.ts";
import { isOrigin } from "../base/base_url.ts";
import { parseSize } from "../base/duration.ts";
import { isHeaderName, METHODS } from "../base/http_message.ts";
import { encodeJson } from "../base/json.ts";
import { messageOf } from "../base/message_of.ts";
import type { Members } from "../base/plain_object.ts";
import type { FieldError } from "../base/problem.ts";
import { parseRate, RATE_FORM } from "../base/rate.ts";
import {
  ANYTHING,
  below,
  FLAG,
  type Infer,
  listOf,
  oneOf,
  optional,
  type Report,
  reportTo,
  text,
  TEXT,
} from "../base/shape.ts";
import { corsPolicy } from "../api/cors.ts";
import { parsePathPattern, tokensOf } from "../api/path_pattern.ts";
import { checkDispatchableName } from "../event/event.ts";
import type { OnError } from "../mod.ts";
import { SCOPES } from "../oauth/scope.ts";
import { checkData } from "./check_data.ts";
import { declarations } from "./declarations.ts";
import { INPUT, schemaOf } from "./schemas.ts";

/** Where in the folder a value was exported. */
export interface Origin {
  readonly file: string;
  readonly exportName: string;
}

/** An endpoint as its module exports it, checked. */
export type LoadedEndpoint = NonNullable<ReturnType<typeof checkEndpoint>>;

/** The first segments of the service's own paths. */
const RESERVED_SEGMENTS = [
  "authorization", "consumer", "backend", "system", "console", "account", ".well-known",
  "openapi.json", "asyncapi.json",
];

/** Whether a path starts with one of these segments, which no parameter matches. */
export const isReserved = (path: string) => RESERVED_SEGMENTS.includes(path.split("/")[1] ?? "");

const PATH = parsedBy((value, report) => {
  const pattern = parsePathPattern(typeof value === "string" ? value : "", report);
  const first = pattern?.segments[0];
  // Also where what follows is optional: "/account{/x}?".
  const isReserved = first && first.rank !== 1 && RESERVED_SEGMENTS.includes(first.literal);
  if (isReserved) report(`"/${first.literal}" is the service's own.`);
  return pattern;
});

/** One scope or several. "" is no scope, since it may be a variable that was not set. */
const ONE_OR_MORE = parsedBy((value, report) => SCOPES.parse([value].flat(), report));

const EVENT = authored({
  description: TEXT,
  scope: optional(ONE_OR_MORE, []),
  schema: optional(schemaOf("output")),
  example: optional(ANYTHING),
});
const EMITS = declarations(checkDispatchableName, parsedBy((value, report) => {
  const { description, scope, schema: data, example } = EVENT.parse(value, report);
  try {
    if (example !== undefined) encodeJson(data ? checkData(data, example) : example);
  } catch (error) {
    report(messageOf(error).replaceAll("\n", " "), "/example");
  }
  return { description, scope, data, example };
}));

const ORIGINS = listOf(text((origin) =>
  isOrigin(origin) ? undefined : 'Must be as browsers write it, such as "https://shop.example".'
));
const HEADER_NAMES = listOf(text((name) =>
  isHeaderName(name) ? undefined : "Must be the name of a header."
));

/** A function that is called as a method of its object. */
export const FUNCTION = that<(context: unknown) => unknown>(
  (value) => typeof value === "function",
  "a function",
);

/** An endpoint as a module exports it. */
const ENDPOINT = authored({
  method: oneOf(...METHODS),
  path: PATH,
  scope: optional(ONE_OR_MORE),
  public: optional(that<true>((value) => value === true, "true")),
  summary: optional(text((line) => line === "" ? "Must not be empty." : undefined)),
  input: optional(INPUT, {}),
  output: optional(schemaOf("output")),
  accepts: optional(listOf(oneOf("json", "form")), []),
  emits: optional(EMITS, []),
  maxBody: optional(readAs((size) => parseSize(size) || undefined, 'a size, such as "64KiB"')),
  idempotent: optional(FLAG, false),
  before: optional(FUNCTION),
  limit: optional(authored({
    rate: readAs(parseRate, RATE_FORM),
    by: optional(oneOf("caller", "app", "address")),
  })),
  cors: optional(authored({
    origins: optional(parsedBy((value, report) =>
      value === "*" ? value : ORIGINS.parse(value, report)
    )),
    headers: optional(HEADER_NAMES),
    expose: optional(HEADER_NAMES),
  })),
  handle: FUNCTION,
});

/** Returns the endpoint, or adds what is wrong to `errors` and returns undefined. */
export function checkEndpoint(value: Members, origin: Origin, errors: FieldError[]) {
  const report = reportTo(errors);
  const members = ENDPOINT.parse(value, report);
  const { method, path: pattern, scope: scopes, summary, input, output, cors, limit } = members;
  const { emits, accepts, maxBody: maxBodyBytes, idempotent, before, handle } = members;
  const access = [value["scope"], value["public"]].filter((each) => each !== undefined);
  if (access.length === 2) report("Must not be given with scope.", "/public");
  if (access.length === 0) {
    report("Is required: one or several, [] for any valid token; or else public: true.", "/scope");
  }
  checkInput(members, report);
  if (idempotent && (method === "GET" || emits.length === 0)) {
    report("Needs events in emits, and a method other than GET.", "/idempotent");
  }
  const by = limit?.by ?? (scopes ? "caller" : "address");
  if (!scopes && by !== "address") report("Must be address without a scope.", "/limit/by");
  if (errors.length > 0 || !pattern || !handle) return undefined;
  const onError: readonly OnError[] = [];
  return {
    ...origin, method, pattern, summary, input, output, emits, maxBodyBytes, idempotent,
    /** The scopes that a token must have, all of them; undefined on a public endpoint. */
    scopes,
    takesForms: accepts.includes("form"),
    limit: limit?.rate && { ...limit.rate, by },
    cors: cors && corsPolicy(cors.origins, cors.headers, cors.expose),
    /** The hooks of its folders and its own, the outermost first. */
    before: before ? [before.bind(value)] : [],
    /** The hooks of its folders, the innermost first. */
    onError,
    handle: handle.bind(value),
  };
}

function checkInput(
  { method, path, input: { params, body } }: Infer<typeof ENDPOINT>,
  report: Report,
): void {
  const names = [...tokensOf(path?.text ?? "")].map(({ name }) => name);
  const { properties, required } = params?.schema ?? {};
  const named = [
    ...Object.keys(Object(properties)).map((name) => [name, "properties", name] as const),
    ...[required ?? []].flat().map((name, index) => [String(name), "required", index] as const),
  ];
  for (const [name, ...place] of path ? named : []) {
    // A part of the path without a name has a number.
    if (names.includes(name) || /^\d+$/.test(name)) continue;
    below(report, "input", "params", ...place)("Is not a parameter of the path.");
  }
  if (body && (method === "GET" || method === "DELETE")) {
    report(`Not for ${method}: its body has no meaning (RFC 9110 §9.3).`, "/input/body");
  }
}
