import type { Shape } from "../base/shape.ts";
import type { LoadedInput } from "./check.ts";

/** The shapes of what an endpoint takes. */
export function checkInput(_value: unknown, _reasons: string[]): LoadedInput {
  return {};
}

/** The shape that a schema describes; undefined without one, or after an error. */
export function checkSchema(
  _value: unknown,
  _where: string,
  _reasons: string[],
): Shape<unknown> | undefined {
  return undefined;
}

/** Says what is wrong with an example by its schema. */
export function checkExample(
  _example: unknown,
  _shape: Shape<unknown> | undefined,
  _where: string,
  _reasons: string[],
): void {}
