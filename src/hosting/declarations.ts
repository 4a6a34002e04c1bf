import { parsedBy } from "../base/authored.ts";
import { isPlainObject } from "../base/plain_object.ts";
import { below, type Check, isRecord, type Shape } from "../base/shape.ts";

/**
 * The shape of a module's declarations by name: each is a description, or an object with one.
 *
 * @param checkName says what is wrong with a name
 */
export function declarations<T extends object>(
  checkName: Check,
  declaration: Shape<T>,
): Shape<readonly (T & { readonly name: string })[]> {
  return parsedBy((value, report) => {
    const isObject = isPlainObject(value);
    if (!isObject) report("Must be an object: each name with its description.");
    return Object.entries(isObject ? value : {}).map(([name, declared]) => {
      const reportAt = below(report, name);
      const wrong = checkName(name);
      if (wrong !== undefined) reportAt(wrong);
      const members = isRecord(declared) ? declared : { description: declared };
      return { name, ...declaration.parse(members, reportAt) };
    });
  });
}
