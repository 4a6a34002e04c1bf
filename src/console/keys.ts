import { hasLetters, tell } from "./parts.ts";
import { go, href } from "./router.ts";
import { isAccount } from "./session.ts";

const PLACES: Readonly<Record<string, string>> = {
  o: "", d: "deliveries", e: "events", s: "subscriptions", u: "users", a: "audit", x: "explorer",
};

/** Opens the palette, which is loaded when it is first wanted. */
export const openPalette = () => import("./palette.ts").then((all) => all.openPalette(), tell);

/** Listens to keys. Single letters can be switched off (WCAG 2.1.4). */
export function beginKeys(): void {
  let isGoing = false;
  document.addEventListener("keydown", (event) => {
    const { key } = event;
    if (key.toLowerCase() === "k" && (event.metaKey || event.ctrlKey) && !isAccount) {
      event.preventDefault();
      return void openPalette();
    }
    const isTyping =
      document.activeElement?.closest("input, textarea, select, dialog, [contenteditable]");
    const isOther = event.metaKey || event.ctrlKey || event.altKey;
    if (isTyping || isOther || !hasLetters()) return;
    const page = isGoing ? PLACES[key] : undefined;
    isGoing = key === "g";
    if (page !== undefined && !isAccount) return go(href(page));
    if (act(key)) event.preventDefault();
  });
}

function act(key: string): boolean {
  switch (key) {
    case "j":
    case "k":
      return move(key === "j" ? 1 : -1);
    case "/": {
      const field = document.querySelector<HTMLInputElement>("main input[type=search]");
      field?.focus();
      return field !== null;
    }
    case "?":
      import("./palette.ts").then((all) => all.showHelp(), tell);
      return true;
    default: {
      // For each action that a key can start, a page has a button with that `data-key`.
      const button = /^[a-z]$/.test(key) &&
        document.querySelector<HTMLButtonElement>(`main [data-key="${key}"]`);
      if (button) button.click();
      return Boolean(button);
    }
  }
}

/** Moves the focus between the rows of a table, by their links. */
function move(step: number): boolean {
  const links = [...document.querySelectorAll<HTMLElement>("main a.main")];
  const at = links.indexOf(document.activeElement as HTMLElement);
  const next = links[at === -1 ? 0 : at + step];
  next?.focus();
  return next !== undefined;
}
