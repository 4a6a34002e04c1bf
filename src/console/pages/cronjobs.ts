import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "cronjobs", show: () => head("cronjobs", "Not made yet") };
