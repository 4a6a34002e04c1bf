import type { PasswordHasher } from "../base/password.ts";
import { appRoutes } from "../api/backend/app.ts";
import { auditRoute } from "../api/backend/audit.ts";
import { managedDeliveryRoutes } from "../api/backend/delivery.ts";
import { type EventAdministrationOptions, eventRoutes } from "../api/backend/event.ts";
import { grantRoutes } from "../api/backend/grant.ts";
import { type KeyAdministrationOptions, keyRoutes } from "../api/backend/key.ts";
import {
  managedSubscriptionRoutes,
  type SubscriptionAdministrationOptions,
} from "../api/backend/subscription.ts";
import { userRoutes } from "../api/backend/user.ts";
import type { ProtectedRoute } from "../api/route.ts";

/** What administration works with, over HTTP and from the command line alike. */
export interface AdministrationOptions
  extends
    EventAdministrationOptions,
    SubscriptionAdministrationOptions,
    KeyAdministrationOptions {
  readonly hasher: PasswordHasher;
}

/** Every route of /backend: the command line calls the same ones without a socket. */
export function backendRoutes(options: AdministrationOptions): ProtectedRoute[] {
  return [
    ...appRoutes(options),
    ...userRoutes(options),
    ...grantRoutes(options),
    ...keyRoutes(options),
    auditRoute(options),
    ...eventRoutes(options),
    ...managedDeliveryRoutes(options),
    ...managedSubscriptionRoutes(options),
  ];
}
