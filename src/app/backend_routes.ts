import type { PasswordHasher } from "../base/password.ts";
import { appRoutes } from "../http/backend/app.ts";
import { auditRoute } from "../http/backend/audit.ts";
import { managedDeliveryRoutes } from "../http/backend/delivery.ts";
import { type EventAdministrationOptions, eventRoutes } from "../http/backend/event.ts";
import { grantRoutes } from "../http/backend/grant.ts";
import { type KeyAdministrationOptions, keyRoutes } from "../http/backend/key.ts";
import {
  managedSubscriptionRoutes,
  type SubscriptionAdministrationOptions,
} from "../http/backend/subscription.ts";
import { userRoutes } from "../http/backend/user.ts";
import type { ProtectedRoute } from "../http/route.ts";

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
