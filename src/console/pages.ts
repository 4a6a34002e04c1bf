import type { Child } from "./element.ts";
import type { Place } from "./router.ts";

/** What an address shows, under its entry's name; what it throws is shown in its place. */
interface Page {
  show(place: Place, name: string): Promise<Child> | Child;
}

interface Entry {
  readonly name: string;
  /** Without one it is not in the navigation. */
  readonly icon: string;
  readonly group: string;
  load(): Promise<Page>;
}

/** The pages of operators by the first segment of their address, in the navigation's order. */
export const CONSOLE_PAGES: Readonly<Record<string, Entry>> = {
  "": entry("Overview", "home", "", () => import("./pages/overview.ts")),
  start: entry("Getting started", "", "", () => import("./pages/start.ts")),
  deliveries: entry("Deliveries", "deliveries", "Events", () => import("./pages/deliveries.ts")),
  events: entry("Events", "events", "Events", () => import("./pages/events.ts")),
  subscriptions: entry("Subscriptions", "subscriptions", "Events",
    () => import("./pages/subscriptions.ts")),
  users: entry("Users", "users", "Access", () => import("./pages/users.ts")),
  apps: entry("Apps", "apps", "Access", () => import("./pages/apps.ts")),
  grants: entry("Grants", "grants", "Access", () => import("./pages/grants.ts")),
  issuers: entry("Issuers", "globe", "Access", () => import("./pages/issuers.ts")),
  resources: entry("Resources", "apps", "Access", () => import("./pages/resources.ts")),
  explorer: entry("API explorer", "explorer", "Service", () => import("./pages/explorer.ts")),
  cronjobs: entry("Cronjobs", "clock", "Service", () => import("./pages/cronjobs.ts")),
  keys: entry("Signing keys", "key", "Service", () => import("./pages/keys.ts")),
  audit: entry("Audit log", "audit", "Service", () => import("./pages/audit.ts")),
  settings: entry("Settings", "settings", "Service", () => import("./pages/settings.ts")),
};

/** The same of people's own webhooks, of which one is an id. */
export const webhooks = entry("Your webhooks", "", "", () => import("./pages/webhooks.ts"));

function entry(name: string, icon: string, group: string, load: Entry["load"]): Entry {
  return { name, icon, group, load };
}
