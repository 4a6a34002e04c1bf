import { isPlainObject } from "./plain_object.ts";
import { isRecord, type Members, object, type ObjectShape, type Shape, shown } from "./shape.ts";

/**
 * Returns the shape of an object that an author writes in code. An undefined member counts as
 * missing. An unknown member is an error, and so is an instance of a class, such as Map or Promise.
 */
export function authored<const M extends Members>(members: M): ObjectShape<M> {
  const shape = object(members);
  return {
    ...shape,
    parse(value, report) {
      if (!isPlainObject(value)) {
        const ofClass = () => report("Must be a plain object, not one of a class.");
        return shape.parse(undefined, isRecord(value) ? ofClass : report);
      }
      const given = Object.entries(value).filter(([, each]) => each !== undefined);
      return shape.parse(Object.fromEntries(given), report);
    },
  };
}

/** Returns a shape with this `parse` and an empty schema. */
export function parsedBy<T>(parse: Shape<T>["parse"]): Shape<T> {
  return { ...shown<T>({}), parse };
}

/** A value that `isRight` accepts. Any other is undefined, with the error "Must be `what`." */
export function that<T>(isRight: (value: unknown) => boolean, what: string): Shape<T | undefined> {
  return parsedBy((value, report) => {
    if (isRight(value)) return value as T;
    report(`Must be ${what}.`);
    return undefined;
  });
}

/** A text that `read` parses. Any other value is undefined, with the error "Must be `what`." */
export function readAs<T>(read: (text: string) => T | undefined, what: string) {
  return parsedBy((value, report) => {
    const found = typeof value === "string" ? read(value) : undefined;
    if (found === undefined) report(`Must be ${what}.`);
    return found;
  });
}
