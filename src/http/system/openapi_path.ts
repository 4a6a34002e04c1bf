import type { Schema } from "./json_schema.ts";

/** A path as OpenAPI has it, and its parameters in order. */
export interface PathTemplate {
  /** "/orders/{id}". */
  readonly text: string;
  readonly names: readonly string[];
  /** The same for all paths that OpenAPI takes for one: names left out. */
  readonly shape: string;
}

const TOKEN = new RegExp(
  [
    String.raw`\\(?<escaped>.)`,
    String.raw`:(?<name>[\p{ID_Start}$_][\p{ID_Continue}$]*)`,
    String.raw`(?<group>\()`,
    String.raw`(?<mark>[*?+{}])`,
    String.raw`(?<plain>.)`,
  ].join("|"),
  "gsu",
);

/**
 * The template of a route's path. A URLPattern says more than a template can: what a group matches
 * is left out, a wildcard becomes a parameter that is numbered as handlers have it ("0"), and an
 * optional part is there.
 */
export function toTemplate(pattern: string): PathTemplate {
  const names: string[] = [];
  let text = "";
  let shape = "";
  let unnamed = 0;
  let depth = 0;
  let isNamed = false; // a group right behind a name belongs to it

  const addParameter = (name: string): void => {
    names.push(name);
    text += `{${name}}`;
    shape += "{}";
  };
  for (const { groups = {} } of pattern.matchAll(TOKEN)) {
    const { name, group, mark, escaped, plain } = groups;
    if (depth > 0) {
      if (group !== undefined) depth++;
      else if (plain === ")") depth--;
      continue;
    }
    const wasNamed = isNamed;
    isNamed = name !== undefined;
    if (name !== undefined) addParameter(name);
    else if (group !== undefined) {
      depth = 1;
      if (!wasNamed) addParameter(String(unnamed++));
    } else if (mark === "*" && !wasNamed && !text.endsWith("}")) addParameter(String(unnamed++));
    else if (mark === undefined) {
      text += escaped ?? plain ?? "";
      shape += escaped ?? plain ?? "";
    }
  }
  return { text, names, shape };
}

/** The parameters of a template, as an operation declares them. */
export function pathParameters({ names }: PathTemplate): Schema[] {
  return names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
}
