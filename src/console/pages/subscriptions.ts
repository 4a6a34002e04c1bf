import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "subscriptions", show: () => head("subscriptions", "Not made yet") };
