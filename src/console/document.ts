import { get } from "./api.ts";

/** A schema of the OpenAPI document, as far as forms need it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly default?: unknown;
  readonly format?: string;
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly minimum?: number;
  readonly maximum?: number;
}

/** A parameter of a path or a query. */
export interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
  readonly description?: string;
  readonly schema: Schema;
}

/** One operation, with its method and path. */
export interface Operation {
  readonly operationId: string;
  readonly method: string;
  readonly path: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { schema?: Schema; example?: unknown }>>;
  };
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

interface Document {
  /** By path and method. */
  readonly paths: Record<string, Record<string, Omit<Operation, "method" | "path">>>;
  /** By the event's name. */
  readonly webhooks: Readonly<Record<string, { readonly post: Pick<Operation, "requestBody"> }>>;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

let loaded: Promise<Document> | undefined;

/** The OpenAPI document of this service, which is fetched once. */
function apiDocument(): Promise<Document> {
  return loaded ??= get<Document>("/openapi.json").catch((error: unknown) => {
    loaded = undefined;
    throw error;
  });
}

/** All operations, in the order of the document. */
export async function listOperations(): Promise<Operation[]> {
  const { paths } = await apiDocument();
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods)
      .map(([method, rest]) => ({ ...rest, path, method: method.toUpperCase() })));
}

/** The schema of the JSON body of the operation with this id. */
export async function bodyOf(id: string): Promise<Schema> {
  const operation = (await listOperations()).find(({ operationId }) => operationId === id);
  return resolve(operation?.requestBody?.content["application/json"]?.schema ?? {});
}

/** An example of each event that modules declare, by its name. */
export async function listExamples(): Promise<Map<string, unknown>> {
  const { webhooks } = await apiDocument();
  return new Map(Object.entries(webhooks).filter(([name]) => !name.startsWith("gatepost."))
    .map(([name, { post: { requestBody } }]) =>
      [name, requestBody?.content["application/json"]?.example ?? {}]));
}

/** Follows the references of a schema, and takes the first alternative that is not null. */
export async function resolve(schema: Schema): Promise<Schema> {
  const { components } = await apiDocument();
  const { $ref, anyOf } = schema;
  const target = $ref && components.schemas[$ref.replace(/^.*\//, "")];
  if (target) return resolve(target);
  const [first] = (anyOf ?? []).filter(({ type }) => type !== "null");
  return first ? { ...schema, ...await resolve(first) } : schema;
}
