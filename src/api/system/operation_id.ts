/**
 * Returns the operationId of a hosted endpoint, made from its method and path template alone, so
 * that files and other endpoints do not change it. Segments are joined by `_`. The parameter `{id}`
 * is `id`, any other `by_name`: "get_v1_products_id", "get_articles_by_slug". Characters other than
 * ASCII letters and digits become their hexadecimal codes between `__` and `_`. So does the first
 * letter of a literal `id` or `by`, so that two paths never share an id.
 */
export function operationId(method: string, template: string): string {
  const segments = template.slice(1).split("/").map((segment) => {
    if (segment === "{id}") return "id";
    const [, parameter] = /^\{([^{}]+)\}$/.exec(segment) ?? [];
    if (parameter !== undefined) return `by_${spell(parameter)}`;
    return spell(segment, /^(?:id|by)$/.test(segment) ? /^./ : undefined);
  });
  return [method.toLowerCase(), ...segments].join("_");
}

/** Returns an event's id in documents: "order_created" for order.created. No two share an id. */
export function eventId(name: string): string {
  return name.split(/(?<=\w)\.(?=\w)/).map((part) => spell(part)).join("_");
}

function spell(text: string, spelled = /[^A-Za-z0-9]/gu): string {
  return text.replace(spelled, (character) => `__${character.codePointAt(0)?.toString(16)}_`);
}
