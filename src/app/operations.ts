import type { Administration } from "../api/administration.ts";
import { appOperations } from "../api/app.ts";
import { authorizeOperations } from "../api/authorization/authorize.ts";
import { deviceOperation } from "../api/authorization/device.ts";
import { introspectOperation } from "../api/authorization/introspect.ts";
import { metadataOperations, pathMetadataOperation } from "../api/authorization/metadata.ts";
import { revokeOperation } from "../api/authorization/revoke.ts";
import { tokenOperation } from "../api/authorization/token.ts";
import { verifyOperations } from "../api/authorization/verify.ts";
import { whoamiOperation } from "../api/authorization/whoami.ts";
import { auditOperation } from "../api/backend/audit.ts";
import { cronjobOperations } from "../api/backend/cronjob.ts";
import { eventOperations } from "../api/backend/event.ts";
import { grantOperations } from "../api/backend/grant.ts";
import { issuerOperations } from "../api/backend/issuer.ts";
import { keyOperations } from "../api/backend/key.ts";
import { principalOperations } from "../api/backend/principal.ts";
import { problemOperations } from "../api/backend/problem.ts";
import { receiverOperations } from "../api/backend/receiver.ts";
import { resourceOperations } from "../api/backend/resource.ts";
import { healthOperation, seriesOperation } from "../api/backend/series.ts";
import { backupOperation, configOperation } from "../api/backend/server.ts";
import { streamOperation } from "../api/backend/stream.ts";
import { userOperations } from "../api/backend/user.ts";
import { eventCatalogueOperation } from "../api/consumer/event.ts";
import { accountOperations, managedSessionOperation } from "../api/consumer/account.ts";
import { accountPageOperations } from "../api/consumer/account_pages.ts";
import { loginOperation } from "../api/consumer/login.ts";
import { deliveryOperations, managedDeliveryOperations } from "../api/delivery.ts";
import type { Operation } from "../api/operation.ts";
import { resendOperations } from "../api/resend.ts";
import { subscribeOperations } from "../api/subscribe.ts";
import { subscriptionOperations } from "../api/subscription.ts";
import { createAsyncApi } from "../api/system/asyncapi.ts";
import { documentOperation } from "../api/system/document.ts";
import { createOpenApi } from "../api/system/openapi.ts";
import { assetOperations, consoleOperations } from "../api/pages/console_page.ts";
import { statusOperations } from "../api/system/status.ts";
import { WEBHOOKS_PATH } from "../oauth/console_app.ts";
import type { Services } from "../services.ts";

/** Lists the operations of the service itself, in the order of /openapi.json. */
export function ownOperations(services: Services, ofModules: readonly Operation[]): Operation[] {
  const own = [
    // Left out if other issuers replace the built-in authorization server.
    ...services.config.authorizationServer ? [
      loginOperation(services),
      ...authorizeOperations(services),
      tokenOperation(services),
      deviceOperation(services),
      ...verifyOperations(services),
    ] : [],
    revokeOperation(services),
    introspectOperation(services),
    whoamiOperation(services),
    ...metadataOperations(services),
    ...subscribeOperations(services),
    ...subscriptionOperations("/consumer", services),
    ...deliveryOperations(services),
    healthOperation("/consumer", services),
    ...resendOperations("/consumer", services),
    eventCatalogueOperation(services),
    ...accountOperations(services),
    ...appOperations("/consumer", services),
    ...backendOperations(services),
    // Receivers exist in a running server only.
    ...services.receivers ? receiverOperations(services.receivers, services) : [],
    backupOperation(services),
    streamOperation(services),
    ...statusOperations(services),
    documentOperation("/asyncapi.json", "getAsyncApi", "The events, for AsyncAPI",
      (isKnown) => createAsyncApi(services, isKnown), services),
  ];
  // Filled below, because the document also describes itself and the last metadata operation.
  const described = [...own];
  const openApi = documentOperation("/openapi.json", "getOpenApi", "The operations, for OpenAPI",
    (isKnown) => createOpenApi(described, services, isKnown), services);
  const pathMetadata = pathMetadataOperation([...own, openApi, ...ofModules], services);
  described.push(pathMetadata, ...ofModules, openApi);
  return [...own, pathMetadata, openApi];
}

/** Lists the pages of a user's account, which the documents leave out. */
export function accountPages(services: Services): Operation[] {
  if (!services.config.authorizationServer) return [];
  const { consoleUrl, issuer } = services;
  return [
    ...accountPageOperations(services, consoleUrl === issuer),
    ...assetOperations(services),
    ...consoleOperations(WEBHOOKS_PATH, issuer, services),
  ];
}

/** Lists the operations of /backend, which the command line also calls, without a socket. */
export function backendOperations(
  services: Administration &
    Pick<Services, "hasher" | "keys" | "jobs" | "refuseEndpoint" | "metrics" | "events" | "heavy"> &
    Pick<Services, "readiness" | "warnings" | "issuer" | "fetchDocument" | "disk" | "cluster">,
): Operation[] {
  return [
    ...appOperations("/backend", services),
    ...userOperations(services),
    ...issuerOperations(services),
    ...principalOperations(services),
    managedSessionOperation(services),
    ...grantOperations(services),
    ...resourceOperations(services),
    ...keyOperations(services),
    auditOperation(services),
    ...eventOperations(services),
    ...managedDeliveryOperations(services),
    ...resendOperations("/backend", services),
    ...subscriptionOperations("/backend", services),
    ...cronjobOperations(services),
    seriesOperation(services),
    healthOperation("/backend", services),
    ...problemOperations(services),
    configOperation(services),
  ];
}
