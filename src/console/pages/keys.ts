import { call } from "../api.ts";
import { asking } from "../asking.ts";
import { idOf } from "../names.ts";
import { things } from "../things.ts";

const rotate = (label: string, words: string, at_once: boolean) =>
  asking(label, "to 1 new key", words, () => call("POST", "/backend/key", { at_once }));

export const show = things({
  words: "What access tokens are signed with. Who checks these fetches the public parts.",
  path: "key",
  columns: ["kid", "status", "alg", "created_at", "signs_from", "published_until"],
  empty: "No key is published.",
  top: () => [
    rotate("Rotate in 10 minutes", "Until it signs everybody can fetch it.", false),
    rotate("Rotate at once", "For leaks: who has not fetched it yet refuses its tokens.", true),
  ],
  act(key) {
    const typed = idOf(key).slice(0, 8);
    const words = "Every token that it signed is refused from now on.";
    const withdraw = () => call("DELETE", `/backend/key/${idOf(key)}`);
    return asking("Withdraw at once", typed, words, withdraw,
      { look: { kind: "danger" }, typed });
  },
});
