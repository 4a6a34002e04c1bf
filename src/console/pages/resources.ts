import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "resources", show: () => head("resources", "Not made yet") };
