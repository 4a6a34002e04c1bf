import { begin } from "./session.ts";
import { beginRouting } from "./router.ts";
import { showFrame, showPage, showRefused } from "./shell.ts";

const begun = await begin().catch(() => "The server does not answer. Load the page again.");
if (begun === true) {
  showFrame();
  beginRouting(showPage);
} else showRefused(begun);
