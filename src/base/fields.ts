import type { InferMembers, Members, ObjectShape } from "./shape.ts";
import { toTime } from "./time.ts";

type Camel<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<Camel<Rest>>}`
  : Name;
type TimeWord = "at" | "from" | "since" | "time" | "until";
type TimeName = TimeWord | `${string}_${TimeWord}`;

/** A member's field name: `jwks_uri` is jwksUri. A time ends in Ms: `created_at` is createdAtMs. */
export type FieldName<Name extends string> = Name extends TimeName ? `${Camel<Name>}Ms`
  : Camel<Name>;
type Field<Name, Value> = Name extends TimeName ? number | Exclude<Value, string> : Value;

type Present<R> = { [N in keyof R & string]: undefined extends R[N] ? never : N }[
  keyof R & string
];

/** A JSON object with field names. Its optional members may also be `Missing`, by default null. */
export type FieldsOf<R, Missing = null> =
  & { readonly [N in Present<R> as FieldName<N>]: Field<N, R[N]> }
  & {
    readonly [N in Exclude<keyof R & string, Present<R>> as FieldName<N>]?:
      | Field<N, R[N]>
      | Missing;
  };

const TIME_NAME = /(?:^|_)(?:at|from|since|time|until)$/;

/** Returns the field name of a JSON member; `FieldName` is its type. */
export function fieldName(member: string): string {
  const camel = member.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase());
  return TIME_NAME.test(member) ? `${camel}Ms` : camel;
}

/**
 * Makes a function that turns the fields of an item into a JSON object. The object has the shape's
 * members only, with times as in RFC 3339. An optional member that is null is left out.
 */
export function recordOf<const M extends Members>({ members }: ObjectShape<M>) {
  const parts = Object.entries(members).map(([name, { isOptional }]) =>
    ({ name, isOptional, field: fieldName(name), isTime: TIME_NAME.test(name) })
  );
  return (item: FieldsOf<InferMembers<M>>): InferMembers<M> => {
    const fields = new Map<string, unknown>(Object.entries(item));
    const shown = parts.flatMap(({ name, isOptional, field, isTime }) => {
      const value = fields.get(field);
      if (value === undefined || value === null && isOptional) return [];
      return [[name, isTime && typeof value === "number" ? toTime(value) : value]];
    });
    return Object.fromEntries(shown) as InferMembers<M>;
  };
}

/** Returns the fields of a parsed body, whose times are milliseconds already. */
export function toFields<R extends object>(body: R): FieldsOf<R, undefined> {
  const entries = Object.entries(body).map(([name, value]) => [fieldName(name), value]);
  return Object.fromEntries(entries) as FieldsOf<R, undefined>;
}
