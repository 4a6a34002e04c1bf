import { authored, parsedBy } from "../base/authored.ts";
import { toShape } from "../base/json_schema.ts";
import { optional, type Shape } from "../base/shape.ts";
import { fromStandard, standardOf } from "../base/standard_schema.ts";
import { ofTexts } from "./texts.ts";

/**
 * What a schema describes.
 *
 * @param side what documents show of a library's schema: what goes in, or what comes out
 */
export function schemaOf(side: "input" | "output"): Shape<Shape<unknown>> {
  return parsedBy((value, report) => {
    const standard = standardOf(value);
    return standard ? fromStandard(standard, side) : toShape(value, report);
  });
}

const SCHEMA = schemaOf("input");

/** A schema of parameters or of a query. */
const OF_TEXTS = parsedBy((value, report) => {
  const shape = SCHEMA.parse(value, report);
  const isObject = shape.schema["type"] === "object" || standardOf(value) !== undefined;
  if (!isObject) report('Must have type: "object".');
  return ofTexts(shape, value);
});

/** A schema of a body, and what it makes of one that comes as a form. */
const OF_BODY = parsedBy((value, report) => {
  const shape = SCHEMA.parse(value, report);
  return { ...shape, form: ofTexts(shape, value) };
});

/** What an endpoint takes; shapes of a library's schemas may return promises. */
export const INPUT = authored({
  params: optional(OF_TEXTS),
  query: optional(OF_TEXTS),
  body: optional(OF_BODY),
});
