import { isPlainObject } from "./plain_object.ts";
import { isRecord, type Members, object, type ObjectShape, type Shape, shown } from "./shape.ts";

/**
 * The shape of an object that an author has written in code: a member that is undefined is missing,
 * and one that is not known is an error. So is a Map or a Promise, which has no members.
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

/** Whatever `parse` takes. */
export function parsedBy<T>(parse: Shape<T>["parse"]): Shape<T> {
  return { ...shown<T>({}), parse };
}

/** What `isRight` takes; undefined after an error, which says what it must be. */
export function that<T>(isRight: (value: unknown) => boolean, what: string): Shape<T | undefined> {
  return parsedBy((value, report) => {
    if (isRight(value)) return value as T;
    report(`Must be ${what}.`);
    return undefined;
  });
}

/** What `read` makes of a text; undefined after an error, which says what it must be. */
export function readAs<T>(read: (text: string) => T | undefined, what: string) {
  return parsedBy((value, report) => {
    const found = typeof value === "string" ? read(value) : undefined;
    if (found === undefined) report(`Must be ${what}.`);
    return found;
  });
}
