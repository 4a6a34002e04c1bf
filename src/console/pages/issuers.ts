import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "issuers", show: () => head("issuers", "Not made yet") };
