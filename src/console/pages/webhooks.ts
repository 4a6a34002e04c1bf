import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "webhooks", show: () => head("webhooks", "Not made yet") };
