import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "audit", show: () => head("audit", "Not made yet") };
