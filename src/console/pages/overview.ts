import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "overview", show: () => head("overview", "Not made yet") };
