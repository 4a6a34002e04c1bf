const markup = Symbol("markup");
const attributeList = Symbol("attributes");

/** Finished HTML. Only this module makes it, so a string or parsed JSON can never be Html. */
export interface Html {
  readonly [markup]: string;
}

/** Attributes for the inside of a tag; see attributes(). */
export interface Attributes {
  readonly [attributeList]: string;
}

/** What a template may hold: strings are escaped, `false`, `null` and `undefined` show nothing. */
export type HtmlValue =
  | Html | Attributes | string | number | false | null | undefined | readonly HtmlValue[];

/** Where the next interpolation is: text, a tag, or an attribute value in these quotes. */
type Place = "text" | "tag" | '"' | "'";

const ENTITIES: Readonly<Record<string, string>> = {
  "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;",
};

// The parser does not read the content of these elements as HTML: escaping would not work there.
const RAW_ELEMENTS: ReadonlySet<string> = new Set(
  "iframe noembed noframes noscript plaintext script style xmp".split(" "),
);

const TAG_START = /<(?:!doctype|\/?([a-z][a-z0-9-]*))(?=[\s/>]|$)/iy;

/**
 * Template tag that returns HTML with every interpolation escaped. Fragments nest, arrays are
 * joined. An interpolation may be in text, in a quoted attribute value (strings and numbers only),
 * or in a tag (attributes() only). Anywhere else, and for a template that does not end in text, it
 * throws TypeError. It does not check URLs: the caller that writes `href` or `action` does.
 *
 * @example html`<p class="${kind}">${name}</p>`
 */
export function html(strings: TemplateStringsArray, ...values: readonly HtmlValue[]): Html {
  let place: Place = "text";
  let text = "";
  for (const [index, part] of strings.entries()) {
    place = walk(part, place);
    text += part;
    if (index < values.length) text += fill(values[index], place);
  }
  if (place !== "text") throw new TypeError("an HTML template must end outside of its tags");
  return { [markup]: text };
}

/**
 * Returns attributes for an interpolation inside a tag: `true` gives the bare name, `undefined` and
 * `false` leave the attribute out. Throws TypeError for a name that is not one in lower case.
 *
 * @example html`<input name="user" ${attributes({ value: user, autofocus: true })}>`
 */
export function attributes(
  given: Readonly<Record<string, string | number | boolean | undefined>>,
): Attributes {
  let text = "";
  for (const [name, value] of Object.entries(given)) {
    if (!/^[a-z][a-z0-9-]*$/.test(name)) throw new TypeError("not an attribute name");
    if (value === undefined || value === false) continue;
    text += value === true ? ` ${name}` : ` ${name}="${escape(String(value))}"`;
  }
  return { [attributeList]: text };
}

/** Returns a style element. Throws TypeError for a `<` in it, the one way out of the element. */
export function styleElement(css: string): Html {
  if (css.includes("<")) throw new TypeError("a style sheet must not contain <");
  return { [markup]: `<style>${css}</style>` };
}

/** Returns a script element that loads a module of this service. */
export function moduleScript(src: string): Html {
  return { [markup]: `<script type="module" src="${escape(src)}"></script>` };
}

/** Returns the text of finished HTML, for the body of a response. */
export function renderHtml(fragment: Html): string {
  return fragment[markup];
}

function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => ENTITIES[character] ?? "");
}

function fill(value: HtmlValue, place: Place): string {
  const isObject = typeof value === "object" && value !== null;
  if (place === "tag") {
    if (isObject && attributeList in value) return value[attributeList];
    throw new TypeError("only attributes() may be inside a tag");
  }
  if (value === false || value === null || value === undefined) return "";
  if (typeof value === "string") return escape(value);
  if (typeof value === "number") return String(value);
  if (place === "text") {
    if (Array.isArray(value)) return value.map((item: HtmlValue) => fill(item, place)).join("");
    if (isObject && markup in value) return value[markup];
  }
  throw new TypeError("this value may not be in this place of an HTML template");
}

/** Follows the HTML tokenizer through one part of a template and returns the place at its end. */
function walk(part: string, start: Place): Place {
  let place = start;
  let at = 0;
  while (at < part.length) {
    if (place === "text") {
      const open = part.indexOf("<", at);
      if (open === -1) return place;
      at = enterTag(part, open);
      place = "tag";
    } else if (place === "tag") {
      const next = at + part.slice(at).search(/[<>="']|$/);
      if (next === part.length) return place;
      const quote = part[next + 1];
      if (part[next] === ">") place = "text";
      else if (part[next] === "=" && (quote === '"' || quote === "'")) place = quote;
      else throw new TypeError("attribute values in an HTML template must be quoted");
      at = next + (place === "text" ? 1 : 2);
    } else { // in a quoted value
      const close = part.indexOf(place, at);
      if (close === -1) return place;
      at = close + 1;
      place = "tag";
    }
  }
  return place;
}

function enterTag(part: string, open: number): number {
  TAG_START.lastIndex = open;
  const match = TAG_START.exec(part);
  if (match === null) throw new TypeError("an HTML template holds a < that starts no tag");
  if (RAW_ELEMENTS.has((match[1] ?? "").toLowerCase())) {
    throw new TypeError(`an HTML template must not hold <${match[1] ?? ""}>`);
  }
  return open + match[0].length;
}
