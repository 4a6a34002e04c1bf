import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "explorer", show: () => head("explorer", "Not made yet") };
