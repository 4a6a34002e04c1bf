import { begin } from "./session.ts";
import { beginRouting } from "./router.ts";
import { showFrame, showPage, showRefused } from "./shell.ts";

// Only there is what a sign-in is proved with (PKCE), and no token is read on its way.
const reason = !isSecureContext ? "Browsers allow it at https addresses and at this machine's own."
  : await begin().catch(() => "The server does not answer. Load the page again.");
if (reason === "") {
  showFrame();
  beginRouting(showPage);
} else showRefused(reason);
