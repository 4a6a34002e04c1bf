/** The content of an element. Text is never markup; `false`, null and undefined add nothing. */
export type Child = Node | string | number | false | null | undefined | readonly Child[];

/** Functions are listeners (`onclick`), `true` is an attribute with no value. */
export type Attributes = Readonly<
  Record<string, string | number | boolean | undefined | ((event: never) => void)>
>;

/** The arguments of an element: its attributes, if it has any, then its content. */
type Inside = readonly [first?: Attributes | Child, ...rest: Child[]];

// Controls, and marks that change the direction of text, could make one name look like another.
const UNSEEN = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu;
// Text of spaces and invisible characters alone: nobody could find a link of that name.
const EMPTY = /^(?=.*[^\s])[\p{Default_Ignorable_Code_Point}\p{Z}\u2800]+$/u;

/** Returns text that is safe to show: it cannot hide the text beside it or change its direction. */
export function shown(text: string): string {
  return text.replace(UNSEEN, (mark) => (mark === "\n" || mark === "\t" ? mark : ""))
    .replace(EMPTY, "?");
}

/** Makes an element from a name like a CSS selector: its tag, and its classes after dots. */
export function el<Tag extends keyof HTMLElementTagNameMap>(
  name: Tag | `${Tag}.${string}`,
  ...inside: Inside
): HTMLElementTagNameMap[Tag] {
  const [tag, ...classes] = name.split(".") as [Tag, ...string[]];
  const made = document.createElement(tag);
  if (classes.length > 0) made.className = classes.join(" ");
  return filled(made, inside);
}

/** Makes an element of SVG. */
export const svg = (tag: string, ...inside: Inside) =>
  filled(document.createElementNS("http://www.w3.org/2000/svg", tag), inside);

/** Replaces the content of a node. */
export function fill(node: Element, ...children: readonly Child[]): void {
  node.replaceChildren(...nodesOf(children));
}

function nodesOf(children: readonly Child[]): (Node | string)[] {
  return children.flatMap((child): (Node | string)[] => {
    if (child === false || child === null || child === undefined) return [];
    if (child instanceof Node) return [child];
    return typeof child === "object" ? nodesOf(child) : [shown(String(child))];
  });
}

const isAttributes = (given: Inside[0]): given is Attributes => given?.constructor === Object;

function filled<Made extends Element>(made: Made, [first, ...rest]: Inside): Made {
  const [attributes, children] = isAttributes(first) ? [first, rest] : [{}, [first, ...rest]];
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") made.addEventListener(name.slice(2), value as EventListener);
    else if (value !== undefined && value !== false) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...nodesOf(children));
  return made;
}

const ICONS: Readonly<Record<string, string>> = {
  home: "M3 9.5 10 3.5l7 6M5 8.5V16h10V8.5M8.5 16v-4h3v4",
  deliveries: "M17 3 2.8 8.6l5.6 2.9m8.6-8.5-5.6 14.2-3-5.7M17 3l-8.6 8.5",
  events: "M11 2.5 4 11.5h5l-1 6 7-9h-5z",
  subscriptions: "M10 3v8.5a3.5 3.5 0 1 1-7 0M10 6.5h4.5M10 3h2",
  users: "M7.5 9.5a3 3 0 1 0 0-6 3 3 0 0 0 0 6M2 16.5c0-3 2.5-4.5 5.5-4.5s5.5 1.5 " +
    "5.5 4.5M13 3.8a3 3 0 0 1 0 5.4M15 12.4c2 .6 3 2 3 4.1",
  apps: "M3 3h5v5H3zM12 3h5v5h-5zM3 12h5v5H3zM12 12h5v5h-5z",
  resources: "M3 3h14v5H3zM3 12h14v5H3zM6 5.5h.01M6 14.5h.01",
  grants: "M10 2.5 16 5v4.5c0 4-2.5 6.8-6 8-3.5-1.2-6-4-6-8V5z",
  explorer: "m6.5 6-4 4 4 4m7-8 4 4-4 4m-2-10-3 12",
  clock: "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15M10 6v4l2.5 2",
  key: "M12.5 11a4 4 0 1 0-3.7-2.5L3 14.3V17h3v-2h2v-2l1.8-2.3M13.5 6.5h.01",
  audit: "M5 2.5h7l3.5 3.5v11.5H5zM8 9h5M8 12h5M8 15h3",
  settings: "M10 12.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5M10 2.5v2M10 15.5v2M2.5 10h2M15.5 " +
    "10h2M4.7 4.7l1.4 1.4M13.9 13.9l1.4 1.4M4.7 15.3l1.4-1.4M13.9 6.1l1.4-1.4",
  globe: "M10 17.5a7.5 7.5 0 1 0 0-15 7.5 7.5 0 0 0 0 15M2.5 10h15M10 2.5c2.5 2.3 2.5 12.7 0 15" +
    "M10 2.5c-2.5 2.3-2.5 12.7 0 15",
  search: "M8.5 14a5.5 5.5 0 1 0 0-11 5.5 5.5 0 0 0 0 11M13 13l4 4",
  resend: "M4 10a6 6 0 1 0 2-4.5M6 2v3.5h3.5",
  pause: "M7 4.5v11M13 4.5v11",
  plus: "M10 4v12M4 10h12",
  menu: "M3 6h14M3 10h14M3 14h14",
  copy: "M7 7h9v9H7zM4 13V4h9",
  check: "m5 10.5 3.5 3.5L15.5 6.5",
  alert: "M10 2.5 18.5 17h-17zM10 8v4M10 14.5h.01",
};

/** An icon in the colour of the text beside it, which says the same to screen readers. */
export function icon(name: string, size = 18) {
  return svg("svg", {
    width: size, height: size, viewBox: "0 0 20 20", fill: "none", stroke: "currentColor",
    "stroke-width": 1.6, "stroke-linecap": "round", "stroke-linejoin": "round",
    "aria-hidden": "true",
  }, svg("path", { d: ICONS[name] ?? "" }));
}
