import type { Question } from "./dialog.ts";
import type { Child } from "./element.ts";
import { button, type ButtonLook } from "./parts.ts";
import { refine } from "./router.ts";
import { mayWrite } from "./session.ts";

/**
 * A button for who may change things: it asks, with what `words` says or finds out, and once it is
 * done the page is shown anew, if nothing else is to follow.
 */
export function asking(
  label: string,
  name: string,
  words: string | (() => Promise<string>),
  act: () => Promise<unknown>,
  { look, after = () => refine({}), ...more }:
    Partial<Question> & { readonly look?: ButtonLook; after?(): unknown } = {},
): Child {
  return mayWrite() && button(`${label}…`, async () => {
    const { ask } = await import("./dialog.ts"); // seldom wanted
    const said = typeof words === "string" ? words : await words();
    const isDone = await ask({
      title: `${label} ${name}?`, words: said, action: label, act, ...more,
    });
    if (isDone) await after();
  }, { key: `${label} ${name}`, ...look });
}
