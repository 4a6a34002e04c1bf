import { tokensOf } from "../path_pattern.ts";
import type { Schema } from "./json_schema.ts";

/** A path as OpenAPI has it, and its parameters in order. */
export interface PathTemplate {
  /** "/orders/{id}". */
  readonly text: string;
  readonly names: readonly string[];
  /** The same for all paths that OpenAPI takes for one: names left out. */
  readonly shape: string;
}

/**
 * The template of a route's path. A URLPattern says more than a template can: what a group matches
 * is left out, a wildcard becomes a parameter that is numbered as handlers have it ("0"), and an
 * optional part is there.
 */
export function toTemplate(pattern: string): PathTemplate {
  const names: string[] = [];
  let text = "";
  let unnamed = 0;
  let isNamed = false; // a group right behind a name belongs to it
  for (const { escaped, name, regexp, mark, character } of tokensOf(pattern)) {
    const isWildcard = mark === "*" && !text.endsWith("}");
    const isGroup = !isNamed && (regexp !== undefined || isWildcard);
    const parameter = name ?? (isGroup ? String(unnamed++) : undefined);
    isNamed = name !== undefined;
    if (parameter !== undefined) names.push(parameter);
    text += parameter === undefined ? escaped ?? character ?? "" : `{${parameter}}`;
  }
  return { text, names, shape: text.replace(/\{.*?\}/g, "{}") };
}

/** The parameters of a template, as an operation declares them. */
export function pathParameters({ names }: PathTemplate): Schema[] {
  return names.map((name) => ({ name, in: "path", required: true, schema: { type: "string" } }));
}
