import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "events", show: () => head("events", "Not made yet") };
