/** What an OpenAPI document says of one route beyond what the route itself says. */
export interface OperationDocs {
  /** Unique, for generated clients. */
  readonly id: string;
  /** The schema of a JSON body; with `?` at its end the body may be missing. */
  readonly json?: string;
  /** The schema of a form. */
  readonly form?: string;
  /** Query parameters, by their names in the document. */
  readonly query?: readonly string[];
  /** The schema of each good answer; "" where it has no body, a media type where it is no JSON. */
  readonly responses: Readonly<Record<number, string>>;
  /** Refusals of its own, beside those that follow from its access, its path and its body. */
  readonly refuses?: readonly number[];
  /** By what else than an access token it may be called. */
  readonly security?: "client" | "client or token" | "token or none" | "inspector";
  /** Whether a good answer has Location; one with 201 or 303 always has. */
  readonly isLocated?: boolean;
}

const PAGE = ["limit", "cursor"];
const AUTHORIZE = [
  "client_id",
  "redirect_uri",
  "response_type",
  "scope",
  "state",
  "code_challenge",
  "code_challenge_method",
  "resource",
  "login_hint",
];

/** What is documented of each built-in route, by path and method. */
export const OPERATIONS: Readonly<Record<string, Readonly<Record<string, OperationDocs>>>> = {
  "/consumer/login": {
    POST: {
      id: "login",
      json: "LoginRequest",
      responses: { 200: "LoginResponse" },
      refuses: [401, 429],
    },
  },
  "/consumer/subscription": {
    GET: { id: "listSubscriptions", query: PAGE, responses: { 200: "SubscriptionPage" } },
    POST: {
      id: "subscribe",
      json: "NewSubscription",
      responses: { 201: "SubscriptionWithSecret" },
      refuses: [409],
    },
  },
  "/consumer/subscription/:id": {
    GET: { id: "getSubscription", responses: { 200: "Subscription" } },
    PATCH: {
      id: "changeSubscription",
      json: "SubscriptionChange",
      responses: { 200: "Subscription" },
      refuses: [409],
    },
    DELETE: { id: "unsubscribe", responses: { 204: "" } },
  },
  "/consumer/subscription/:id/secret": {
    POST: {
      id: "replaceSigningSecret",
      responses: { 200: "SubscriptionWithSecret" },
      refuses: [409],
    },
  },
  "/consumer/subscription/:id/test": {
    POST: {
      id: "testSubscription",
      responses: { 202: "DeliveryId" },
      refuses: [409, 429],
      isLocated: true,
    },
  },
  "/consumer/subscription/:id/delivery": {
    GET: { id: "listDeliveries", query: PAGE, responses: { 200: "DeliveryPage" } },
  },
  "/consumer/subscription/:id/delivery/:delivery": {
    GET: { id: "getDeliveryOfSubscription", responses: { 200: "DeliveryWithAttempts" } },
  },
  "/consumer/subscription/:id/delivery/:delivery/resend": {
    POST: {
      id: "resendDeliveryOfSubscription",
      responses: { 202: "DeliveryId" },
      refuses: [409, 429],
    },
  },
  "/consumer/subscription/delivery/:delivery": {
    GET: { id: "getDelivery", responses: { 200: "DeliveryWithAttempts" } },
  },
  "/consumer/subscription/delivery/:delivery/resend": {
    POST: { id: "resendDelivery", responses: { 202: "DeliveryId" }, refuses: [409, 429] },
  },
  "/consumer/event": {
    GET: { id: "listDeclaredEvents", query: PAGE, responses: { 200: "DeclaredEventPage" } },
  },
  "/consumer/grant": {
    GET: { id: "listActingApps", query: PAGE, responses: { 200: "ActingAppPage" } },
  },
  "/consumer/grant/:id": {
    DELETE: { id: "withdrawGrant", responses: { 204: "" } },
  },

  "/authorization/authorize": {
    GET: { id: "authorize", query: AUTHORIZE, responses: { 200: "text/html", 303: "" } },
    POST: {
      id: "submitAuthorizeForm",
      form: "AuthorizeForm",
      query: AUTHORIZE,
      responses: { 200: "text/html", 303: "" },
    },
  },
  "/authorization/token": {
    POST: {
      id: "getToken",
      form: "TokenRequest",
      responses: { 200: "TokenResponse" },
      refuses: [401, 429],
      security: "client",
    },
  },
  "/authorization/revoke": {
    POST: {
      id: "revokeToken",
      form: "RevokeRequest?",
      responses: { 200: "Empty" },
      refuses: [401, 429],
      security: "client or token",
    },
  },
  "/authorization/introspect": {
    POST: {
      id: "introspectToken",
      form: "IntrospectRequest",
      responses: { 200: "Introspection" },
      refuses: [401, 429],
      security: "client or token",
    },
  },
  "/authorization/whoami": {
    GET: { id: "whoami", responses: { 200: "Caller" } },
  },

  "/.well-known/oauth-authorization-server": {
    GET: { id: "getServerMetadata", responses: { 200: "ServerMetadata" } },
  },
  "/.well-known/openid-configuration": {
    GET: { id: "getOpenIdConfiguration", responses: { 200: "ServerMetadata" } },
  },
  "/.well-known/oauth-protected-resource": {
    GET: { id: "getResourceMetadata", responses: { 200: "ResourceMetadata" } },
  },
  "/.well-known/jwks.json": {
    GET: { id: "getKeys", responses: { 200: "Jwks" } },
  },

  "/backend/app": {
    GET: { id: "listApps", query: PAGE, responses: { 200: "AppPage" } },
    POST: { id: "addApp", json: "NewApp", responses: { 201: "AppWithSecret" } },
  },
  "/backend/app/:client_id": {
    GET: { id: "getApp", responses: { 200: "App" } },
    PATCH: { id: "changeApp", json: "AppChange", responses: { 200: "App" } },
    DELETE: { id: "deleteApp", responses: { 204: "" } },
  },
  "/backend/app/:client_id/secret": {
    POST: {
      id: "replaceAppSecret",
      json: "NewAppSecret?",
      responses: { 200: "AppSecret" },
      refuses: [409],
    },
  },
  "/backend/user": {
    GET: { id: "listUsers", query: PAGE, responses: { 200: "UserPage" } },
    POST: { id: "addUser", json: "NewUser", responses: { 201: "User" }, refuses: [409] },
  },
  "/backend/user/:id": {
    GET: { id: "getUser", responses: { 200: "User" } },
    PATCH: { id: "changeUser", json: "UserChange", responses: { 200: "User" } },
    DELETE: { id: "deleteUser", responses: { 204: "" } },
  },
  "/backend/grant": {
    GET: { id: "listGrants", query: [...PAGE, "user", "app"], responses: { 200: "GrantPage" } },
  },
  "/backend/grant/:id": {
    DELETE: { id: "revokeGrant", responses: { 204: "" } },
  },
  "/backend/grant/revoke": {
    POST: { id: "revokeGrants", json: "Revocation", responses: { 204: "" }, refuses: [404] },
  },
  "/backend/event": {
    GET: {
      id: "listEvents",
      query: [...PAGE, "name", "event_status"],
      responses: { 200: "EventPage" },
    },
    POST: { id: "dispatchEvent", json: "NewEvent", responses: { 202: "EventId" }, isLocated: true },
  },
  "/backend/event/:id": {
    GET: { id: "getEvent", query: PAGE, responses: { 200: "EventWithDeliveries" } },
  },
  "/backend/delivery": {
    GET: {
      id: "listAllDeliveries",
      query: [...PAGE, "delivery_status", "subscription", "event"],
      responses: { 200: "ManagedDeliveryPage" },
    },
  },
  "/backend/delivery/:id": {
    GET: { id: "getAnyDelivery", responses: { 200: "ManagedDeliveryWithAttempts" } },
  },
  "/backend/delivery/:id/resend": {
    POST: { id: "resendAnyDelivery", responses: { 202: "DeliveryId" }, refuses: [409] },
  },
  "/backend/delivery/resend": {
    POST: { id: "resendFailedDeliveries", json: "Resend", responses: { 202: "ResendCount" } },
  },
  "/backend/subscription": {
    GET: { id: "listAllSubscriptions", query: PAGE, responses: { 200: "ManagedSubscriptionPage" } },
  },
  "/backend/subscription/:id": {
    GET: { id: "getAnySubscription", responses: { 200: "ManagedSubscription" } },
    PATCH: {
      id: "changeAnySubscription",
      json: "ManagedSubscriptionChange",
      responses: { 200: "ManagedSubscription" },
      refuses: [409],
    },
    DELETE: { id: "deleteAnySubscription", responses: { 204: "" } },
  },
  "/backend/cronjob": {
    GET: { id: "listCronjobs", query: PAGE, responses: { 200: "CronjobPage" } },
  },
  "/backend/cronjob/:name/run": {
    POST: { id: "runCronjob", responses: { 202: "CronjobName" }, refuses: [409] },
  },
  "/backend/key": {
    GET: { id: "listSigningKeys", query: PAGE, responses: { 200: "KeyPage" } },
    POST: { id: "rotateSigningKey", json: "NewKey?", responses: { 201: "Key" } },
  },
  "/backend/key/:kid": {
    DELETE: { id: "withdrawSigningKey", responses: { 204: "" } },
  },
  "/backend/audit": {
    GET: {
      id: "listAudit",
      query: [...PAGE, "actor", "action", "target", "since", "until"],
      responses: { 200: "AuditPage" },
    },
  },

  "/system/health": {
    GET: { id: "getHealth", responses: { 200: "Health" } },
  },
  "/system/ready": {
    GET: {
      id: "getReadiness",
      responses: { 200: "Readiness", 503: "Readiness" },
      security: "inspector",
    },
  },
  "/system/about": {
    GET: { id: "getAbout", responses: { 200: "About" } },
  },
  "/system/metrics": {
    GET: {
      id: "getMetrics",
      responses: { 200: "text/plain" },
      refuses: [401, 403],
      security: "inspector",
    },
  },

  "/openapi.json": {
    GET: {
      id: "getOpenApi",
      responses: { 200: "OpenApi" },
      refuses: [401],
      security: "token or none",
    },
  },
};
