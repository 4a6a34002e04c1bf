import { findSchemaErrors, type Resolve } from "./json_schema.ts";

type Fields = Readonly<Record<string, unknown>>;
type Check = (value: unknown, at: string) => string[];

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/**
 * Returns all violations of the rules of OpenAPI 3.1: fixed fields and their kinds, required ones,
 * path templates and their parameters, unique operation ids, references, security. It follows the
 * text of the specification (3.1.1, section 4.8), for the parts that are used here.
 */
export function findOpenApiErrors(document: unknown): string[] {
  const root = asFields(document);
  const resolve: Resolve = (reference) => lookUp(root, reference);
  const operationIds: string[] = [];
  const schemes = asFields(asFields(root["components"])["securitySchemes"]);

  /** Allows only these fields, and those with x-; a name ending in "!" is required. */
  function fixed(table: Readonly<Record<string, Check>>): Check {
    return (value, at) => {
      if (!isFields(value)) return [`${at} is no object`];
      const known = Object.entries(table).map(([name, check]) =>
        [name.replace("!", ""), check, name.endsWith("!")] as const
      );
      const missing = known
        .filter(([name, , isRequired]) => isRequired && value[name] === undefined)
        .map(([name]) => `${at}/${name} is missing`);
      const errors = Object.entries(value).flatMap(([name, each]) => {
        if (name.startsWith("x-")) return [];
        const found = known.find(([other]) => other === name);
        return found ? found[1](each, `${at}/${name}`) : [`${at}/${name} is no fixed field`];
      });
      return [...missing, ...errors];
    };
  }

  const text: Check = (value, at) => typeof value === "string" ? [] : [`${at} is no string`];
  const flag: Check = (value, at) => typeof value === "boolean" ? [] : [`${at} is no boolean`];
  const url: Check = (value, at) => URL.canParse(String(value)) ? [] : [`${at} is no URL`];
  const schema: Check = (value, at) => findSchemaErrors(value, resolve, at);
  const list = (check: Check): Check => (value, at) =>
    Array.isArray(value)
      ? value.flatMap((each, index) => check(each, `${at}/${index}`))
      : [`${at} is no array`];
  const map = (check: Check, names = /./s): Check => (value, at) =>
    isFields(value)
      ? Object.entries(value).flatMap(([name, each]) => [
        ...names.test(name) ? [] : [`${at}/${name} is not a name for this`],
        ...check(each, `${at}/${name}`),
      ])
      : [`${at} is no object`];
  const orReference = (check: Check): Check => (value, at) => {
    const reference = asFields(value)["$ref"];
    if (reference === undefined) return check(value, at);
    const target = resolve(String(reference));
    const beside = ["$ref", "summary", "description"];
    if (Object.keys(asFields(value)).some((name) => !beside.includes(name))) {
      return [`${at} has more than a reference`];
    }
    return target === undefined ? [`${at}/$ref leads nowhere`] : check(target, at);
  };

  const mediaType = fixed({ schema, example: () => [] });
  const content = map(mediaType, /^[\w*.+-]+\/[\w*.+-]+/);
  const header = orReference(fixed({ description: text, required: flag, schema, content }));
  const response = orReference(fixed({
    "description!": text,
    headers: map(header),
    content,
  }));
  const responses: Check = (value, at) => [
    ...map(response, /^([1-5](\d\d|XX)|default)$/)(value, at),
    ...Object.keys(asFields(value)).length > 0 ? [] : [`${at} is empty`],
  ];
  const parameter: Check = (value, at) => {
    const { in: place, required, schema: type, content: media } = asFields(value);
    return [
      ...fixed({
        "name!": text,
        "in!": text,
        description: text,
        required: flag,
        schema,
        content,
      })(value, at),
      ...["path", "query", "header", "cookie"].includes(String(place)) ? [] : [`${at}/in`],
      ...place === "path" && required !== true ? [`${at} is in the path and not required`] : [],
      ...(type === undefined) === (media === undefined)
        ? [`${at} has no one of schema, content`] : [],
    ];
  };
  const requestBody = orReference(
    fixed({ description: text, "content!": content, required: flag }),
  );
  const security = list((value, at) =>
    Object.entries(asFields(value)).flatMap(([name, scopes]) => {
      const flows = Object.values(asFields(asFields(schemes[name])["flows"]));
      const known = flows.flatMap((flow) => Object.keys(asFields(asFields(flow)["scopes"])));
      return [
        ...schemes[name] === undefined ? [`${at}/${name} is no security scheme`] : [],
        ...list(text)(scopes, `${at}/${name}`),
        ...flows.length === 0 || asList(scopes).every((scope) => known.includes(String(scope)))
          ? []
          : [`${at}/${name} has a scope that no flow knows`],
      ];
    })
  );
  const operationId: Check = (value, at) => {
    operationIds.push(String(value));
    return text(value, at);
  };
  const parameters: Check = (value, at) => {
    const places = asList(value).map((each) => placeOf(each, resolve));
    return [
      ...list(orReference(parameter))(value, at),
      ...new Set(places).size === places.length ? [] : [`${at} has a parameter twice`],
    ];
  };
  const operation: Check = (value, at) =>
    fixed({
      tags: list(text),
      summary: text,
      description: text,
      operationId,
      parameters,
      requestBody,
      responses,
      callbacks: map(orReference(map(pathItem))),
      deprecated: flag,
      security,
    })(value, at);
  const pathItem: Check = (value, at) =>
    fixed({
      summary: text,
      description: text,
      parameters,
      ...Object.fromEntries(METHODS.map((method) => [method, operation])),
    })(value, at);
  const paths: Check = (value, at) => [
    ...map(pathItem, /^\//)(value, at),
    ...findTemplateErrors(asFields(value), resolve),
  ];
  const flow = (...urls: readonly string[]) =>
    fixed({
      ...Object.fromEntries(urls.map((name) => [`${name}!`, url])),
      refreshUrl: url,
      "scopes!": map(text),
    });
  const securityScheme: Check = (value, at) => {
    const base = { "type!": text, description: text };
    switch (asFields(value)["type"]) {
      case "http":
        return fixed({ ...base, "scheme!": text, bearerFormat: text })(value, at);
      case "oauth2":
        return fixed({
          ...base,
          "flows!": fixed({
            authorizationCode: flow("authorizationUrl", "tokenUrl"),
            clientCredentials: flow("tokenUrl"),
            password: flow("tokenUrl"),
          }),
        })(value, at);
      default:
        return [`${at}/type is not expected here`];
    }
  };
  const name = /^[a-zA-Z0-9._-]+$/;
  const errors = fixed({
    "openapi!": (value, at) => /^3\.1\.\d+$/.test(String(value)) ? [] : [`${at} is not 3.1`],
    "info!": fixed({ "title!": text, "version!": text, description: text, summary: text }),
    servers: list(fixed({ "url!": url, description: text })),
    "paths!": paths,
    webhooks: map(orReference(pathItem)),
    components: fixed({
      schemas: map(schema, name),
      responses: map(response, name),
      parameters: map(orReference(parameter), name),
      headers: map(header, name),
      securitySchemes: map(securityScheme, name),
    }),
    security,
    tags: list(fixed({ "name!": text, description: text })),
  })(document, "#");
  const tags = asList(root["tags"]).map((tag) => asFields(tag)["name"]);
  return [
    ...errors,
    ...operationIds.filter((id, index) => operationIds.indexOf(id) !== index)
      .map((id) => `operationId ${id} is there twice`),
    ...new Set(tags).size === tags.length ? [] : ["a tag is there twice"],
  ];
}

/** The names of a template are parameters and the reverse; no two templates are identical. */
function findTemplateErrors(paths: Fields, resolve: Resolve): string[] {
  const shapes = Object.keys(paths).map((path) => path.replace(/\{[^}]*\}/g, "{}"));
  const identical = shapes.filter((shape, index) => shapes.indexOf(shape) !== index)
    .map((shape) => `#/paths has ${shape} twice`);
  const undeclared = Object.entries(paths).flatMap(([path, item]) => {
    const names = [...path.matchAll(/\{([^}]*)\}/g)].map(([, name]) => `path ${name}`).sort();
    const shared = asList(asFields(item)["parameters"]);
    return METHODS.filter((method) => asFields(item)[method] !== undefined).flatMap((method) => {
      const own = asList(asFields(asFields(item)[method])["parameters"]);
      const declared = [...shared, ...own].map((each) => placeOf(each, resolve))
        .filter((place) => place.startsWith("path ")).sort();
      return declared.join() === names.join() ? [] : [`#/paths/${path}/${method} parameters`];
    });
  });
  return [...identical, ...undeclared];
}

function placeOf(parameter: unknown, resolve: Resolve): string {
  const reference = asFields(parameter)["$ref"];
  const target = reference === undefined ? parameter : resolve(String(reference));
  const { in: place, name } = asFields(target);
  return `${String(place)} ${String(name)}`;
}

/** Returns the target of a local reference (RFC 6901). */
export function lookUp(root: unknown, reference: string): unknown {
  if (!reference.startsWith("#/")) return undefined;
  const steps = reference.slice(2).split("/")
    .map((step) => decodeURIComponent(step).replaceAll("~1", "/").replaceAll("~0", "~"));
  return steps.reduce<unknown>((at, step) => asFields(at)[step], root);
}

function isFields(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The value as an object; an empty object if it is none. */
export function asFields(value: unknown): Fields {
  return isFields(value) ? value : {};
}

function asList(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
