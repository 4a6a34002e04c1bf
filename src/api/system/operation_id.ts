/**
 * The operationId of a hosted endpoint: its method and its path as the document has it, so that
 * neither files nor other endpoints shift it. Segments are joined by `_`; the parameter `{id}` is
 * `id`, any other `by_name`: "get_v1_products_id", "get_articles_by_slug". A character that is no
 * ASCII letter or digit is its code in hexadecimal between `__` and `_`, and so is the first one of
 * a literal `id` or `by`: two paths never share an id.
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

/** The id of an event in documents: "order_created" of order.created; two never share one. */
export function eventId(name: string): string {
  return name.split(/(?<=\w)\.(?=\w)/).map((part) => spell(part)).join("_");
}

function spell(text: string, spelled = /[^A-Za-z0-9]/gu): string {
  return text.replace(spelled, (character) => `__${character.codePointAt(0)?.toString(16)}_`);
}
