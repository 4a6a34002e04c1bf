import { authored, parsedBy } from "../base/authored.ts";
import { toShape } from "../base/json_schema.ts";
import { type Texts, textsByName } from "../base/schema_texts.ts";
import { optional, type Report, type Shape } from "../base/shape.ts";
import { fromStandard, standardOf } from "../base/standard_schema.ts";

/**
 * Makes a shape that parses a schema into the shape that the schema describes.
 *
 * @param side whether documents show the input or the output of a library's schema
 */
export function schemaOf(side: "input" | "output"): Shape<Shape<unknown>> {
  return parsedBy((value, report) => {
    const standard = standardOf(value);
    return standard ? fromStandard(standard, side) : toShape(value, report);
  });
}

/**
 * Returns the shape of {@link Texts}, which become numbers, booleans and lists where their JSON
 * Schema says so. A library's schema gets a text, or a list of repeated texts, and converts them
 * itself.
 */
function ofTexts(value: unknown, report: Report): Shape<unknown> {
  const standard = standardOf(value);
  const shape = standard ? fromStandard(standard, "input") : toShape(value, report, true);
  return {
    ...shape,
    parse: (texts, report) =>
      shape.parse(textsByName(texts as Texts, standard !== undefined), report),
  };
}

/** A schema of parameters or of a query. */
const OF_TEXTS = parsedBy((value, report) => {
  const shape = ofTexts(value, report);
  const isObject = shape.schema["type"] === "object" || standardOf(value) !== undefined;
  if (!isObject) report('Must have type: "object".');
  return shape;
});

const SCHEMA = schemaOf("input");

/** A schema of a body; `form` is the shape of a body that comes as a form. */
const OF_BODY = parsedBy((value, report) =>
  ({ ...SCHEMA.parse(value, report), form: ofTexts(value, () => {}) })
);

/** The `input` of an endpoint. Shapes of a library's schemas may return promises. */
export const INPUT = authored({
  params: optional(OF_TEXTS),
  query: optional(OF_TEXTS),
  body: optional(OF_BODY),
});
