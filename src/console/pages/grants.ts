import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "grants", show: () => head("grants", "Not made yet") };
