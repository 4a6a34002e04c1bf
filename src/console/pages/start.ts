import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "start", show: () => head("start", "Not made yet") };
