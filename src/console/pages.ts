import type { Child } from "./element.ts";
import type { Place } from "./router.ts";

/** A page. `show` gets the name of the page's entry; if it throws, the error is shown instead. */
interface Page {
  show(place: Place, name: string): Promise<Child> | Child;
}

/** An entry without an icon is not in the navigation. */
const entry = (name: string, icon: string, group: string, load = kinds) =>
  ({ name, icon, group, load });

const kinds = (): Promise<Page> => import("./pages/kinds.ts");

/** The pages of operators by the first segment of their address, in the navigation's order. */
export const CONSOLE_PAGES: Readonly<Record<string, ReturnType<typeof entry>>> = {
  "": entry("Overview", "home", "", () => import("./pages/overview.ts")),
  start: entry("Getting started", "", "", () => import("./pages/start.ts")),
  deliveries: entry("Deliveries", "deliveries", "Events", () => import("./pages/deliveries.ts")),
  events: entry("Events", "events", "Events", () => import("./pages/events.ts")),
  subscriptions: entry("Subscriptions", "subscriptions", "Events",
    () => import("./pages/subscriptions.ts")),
  users: entry("Users", "users", "Access"),
  apps: entry("Apps", "apps", "Access", () => import("./pages/apps.ts")),
  grants: entry("Grants", "grants", "Access"),
  issuers: entry("Issuers", "globe", "Access"),
  resources: entry("Resources", "resources", "Access"),
  explorer: entry("API explorer", "explorer", "Service", () => import("./pages/explorer.ts")),
  cronjobs: entry("Cronjobs", "clock", "Service"),
  keys: entry("Signing keys", "key", "Service"),
  audit: entry("Audit log", "audit", "Service", () => import("./pages/audit.ts")),
  settings: entry("Settings", "settings", "Service", () => import("./pages/settings.ts")),
};

/** The entry of a user's own webhooks, where the first segment is the id of one. */
export const webhooks = entry("Your webhooks", "", "", () => import("./pages/webhooks.ts"));
