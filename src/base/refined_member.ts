import { below, type Report, type Shape } from "./shape.ts";

/** The shape with a check of one member, which runs where that is valid, even if others are not. */
export function refinedMember<T extends object, const Name extends keyof T & string>(
  shape: Shape<T>,
  name: Name,
  check: (value: NonNullable<T[Name]>, report: Report) => void,
): Shape<T> {
  return {
    ...shape,
    parse(value, report) {
      let isRight = true;
      const parsed = shape.parse(value, (detail, pointer = "") => {
        const [, first = name] = pointer.split("/");
        isRight &&= first !== name;
        report(detail, pointer);
      });
      const member = parsed[name];
      const isThere = member !== undefined && member !== null;
      if (isRight && isThere) check(member, below(report, name));
      return parsed;
    },
  };
}
