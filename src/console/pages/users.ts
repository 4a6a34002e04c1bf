import type { Page } from "../pages.ts";
import { head } from "../parts.ts";

export const page: Page = { title: "users", show: () => head("users", "Not made yet") };
