import type { Question } from "./dialog.ts";
import type { Child } from "./element.ts";
import { button, type ButtonLook } from "./parts.ts";
import { arrivals, refine } from "./router.ts";
import { mayWrite } from "./session.ts";

/**
 * Asks for confirmation by a dialog, whose code is loaded when it is first needed. Resolves with
 * the result of the action, or with undefined if it was not done.
 */
export async function ask<Made>(question: Question<Made>): Promise<Made | undefined> {
  const { came = arrivals } = question;
  const { ask } = await import("./dialog.ts");
  return came === arrivals ? ask(question) : undefined;
}

/** Shows a secret that cannot be shown again. */
export const showOnce = (title: string, words: Child, body: Child) =>
  ask({ title, words, body, action: "I have saved it", isNotice: true, act: async () => true });

/**
 * A button for users who may change things. It asks for confirmation with the text of `words`.
 * After the action it calls `after`, or shows the page anew if the window is still there.
 */
export function asking<Made>(
  label: string,
  name: string,
  words: string | (() => Promise<string>),
  act: () => Promise<Made>,
  { look, after, ...more }:
    Partial<Question<Made>> & { readonly look?: ButtonLook; after?(made: Made): unknown } = {},
): Child {
  return mayWrite() && button(`${label}…`, async () => {
    const came = arrivals;
    const said = typeof words === "string" ? words : await words();
    const made = await ask({
      title: `${label} ${name}?`, words: said, action: label, came, act, ...more,
    });
    if (made === undefined) return;
    if (after) await after(made);
    else if (came === arrivals) refine({});
  }, { key: `${label} ${name}`, ...look });
}
