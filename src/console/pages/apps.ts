import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "apps", show: () => head("apps", "Not made yet") };
