import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "keys", show: () => head("keys", "Not made yet") };
