import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "settings", show: () => head("settings", "Not made yet") };
