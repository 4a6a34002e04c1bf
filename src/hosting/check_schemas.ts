import { encodeJson } from "../base/json.ts";
import { toShape } from "../base/json_schema.ts";
import { messageOf } from "../base/message_of.ts";
import type { Shape } from "../base/shape.ts";
import { fromStandard, standardOf } from "../base/standard_schema.ts";
import { type PathPattern, tokensOf } from "../api/path_pattern.ts";
import type { LoadedInput } from "./check.ts";
import { checkData } from "./check_data.ts";
import { checkFields, isPlainObject } from "./check_fields.ts";
import { ofTexts } from "./texts.ts";

/** The shapes of what an endpoint takes. */
export function checkInput(
  value: unknown,
  method: string | undefined,
  pattern: PathPattern | undefined,
  reasons: string[],
): LoadedInput {
  if (value === undefined) return {};
  if (!isPlainObject(value)) {
    reasons.push("input must be an object of schemas: { params?, query?, body? }");
    return {};
  }
  checkFields(value, ["params", "query", "body"], "input", reasons);
  const [params, query] = ["params", "query"].map((name) => {
    const source = value[name];
    const shape = checkSchema(source, `input.${name}`, "input", reasons);
    if (shape && standardOf(source) === undefined && shape.schema["type"] !== "object") {
      reasons.push(`input.${name} must have type: "object"`);
    }
    return shape && ofTexts(shape, source);
  });
  checkNames(params?.schema["properties"], pattern, reasons);
  const body = checkSchema(value["body"], "input.body", "input", reasons);
  if (body && (method === "GET" || method === "DELETE")) {
    reasons.push(`input.body is not for ${method}: its body has no meaning (RFC 9110 §9.3)`);
  }
  return { params, query, body, form: body && ofTexts(body, value["body"]) };
}

function checkNames(
  properties: unknown,
  pattern: PathPattern | undefined,
  reasons: string[],
): void {
  const names = [...tokensOf(pattern?.text ?? "")].map(({ name }) => name);
  for (const name of pattern && isPlainObject(properties) ? Object.keys(properties) : []) {
    // What has no name in the path has a number.
    if (names.includes(name) || /^\d+$/.test(name)) continue;
    reasons.push(`input.params.properties["${name}"] is not a parameter of the path`);
  }
}

/**
 * The shape that a schema describes; undefined without one.
 *
 * @param side what documents show of a library's schema: what goes in, or what comes out
 */
export function checkSchema(
  value: unknown,
  where: string,
  side: "input" | "output",
  reasons: string[],
): Shape<unknown> | undefined {
  if (value === undefined) return undefined;
  const standard = standardOf(value);
  return standard ? fromStandard(standard, side) : toShape(value, where, reasons);
}

/** Says what is wrong with an example by its schema. */
export function checkExample(
  example: unknown,
  shape: Shape<unknown> | undefined,
  where: string,
  reasons: string[],
): void {
  if (example === undefined) return;
  try {
    encodeJson(shape ? checkData(shape, example) : example);
  } catch (error) {
    reasons.push(`${where}: ${messageOf(error)}`);
  }
}
