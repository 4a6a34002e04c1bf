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
  readonly answers: Readonly<Record<number, string>>;
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
      answers: { 200: "LoginAnswer" },
      refuses: [401, 429],
    },
  },
  "/consumer/subscription": {
    GET: { id: "listSubscriptions", query: PAGE, answers: { 200: "SubscriptionPage" } },
    POST: {
      id: "subscribe",
      json: "NewSubscription",
      answers: { 201: "SubscriptionWithSecret" },
      refuses: [409],
    },
  },
  "/consumer/subscription/:id": {
    GET: { id: "getSubscription", answers: { 200: "Subscription" } },
    PATCH: {
      id: "changeSubscription",
      json: "SubscriptionChange",
      answers: { 200: "Subscription" },
      refuses: [409],
    },
    DELETE: { id: "unsubscribe", answers: { 204: "" } },
  },
  "/consumer/subscription/:id/secret": {
    POST: {
      id: "replaceSigningSecret",
      answers: { 200: "SubscriptionWithSecret" },
      refuses: [409],
    },
  },
  "/consumer/subscription/:id/test": {
    POST: {
      id: "testSubscription",
      answers: { 202: "DeliveryId" },
      refuses: [409, 429],
      isLocated: true,
    },
  },
  "/consumer/subscription/:id/delivery": {
    GET: { id: "listDeliveries", query: PAGE, answers: { 200: "DeliveryPage" } },
  },
  "/consumer/subscription/:id/delivery/:delivery": {
    GET: { id: "getDeliveryOfSubscription", answers: { 200: "DeliveryWithAttempts" } },
  },
  "/consumer/subscription/:id/delivery/:delivery/resend": {
    POST: {
      id: "resendDeliveryOfSubscription",
      answers: { 202: "DeliveryId" },
      refuses: [409, 429],
    },
  },
  "/consumer/subscription/delivery/:delivery": {
    GET: { id: "getDelivery", answers: { 200: "DeliveryWithAttempts" } },
  },
  "/consumer/subscription/delivery/:delivery/resend": {
    POST: { id: "resendDelivery", answers: { 202: "DeliveryId" }, refuses: [409, 429] },
  },
  "/consumer/event": {
    GET: { id: "listDeclaredEvents", query: PAGE, answers: { 200: "DeclaredEventPage" } },
  },
  "/consumer/grant": {
    GET: { id: "listActingApps", query: PAGE, answers: { 200: "ActingAppPage" } },
  },
  "/consumer/grant/:id": {
    DELETE: { id: "withdrawGrant", answers: { 204: "" } },
  },

  "/authorization/authorize": {
    GET: { id: "authorize", query: AUTHORIZE, answers: { 200: "text/html", 303: "" } },
    POST: {
      id: "submitAuthorizeForm",
      form: "AuthorizeForm",
      query: AUTHORIZE,
      answers: { 200: "text/html", 303: "" },
    },
  },
  "/authorization/token": {
    POST: {
      id: "getToken",
      form: "TokenRequest",
      answers: { 200: "TokenAnswer" },
      refuses: [401, 429],
      security: "client",
    },
  },
  "/authorization/revoke": {
    POST: {
      id: "revokeToken",
      form: "RevokeRequest?",
      answers: { 200: "Empty" },
      refuses: [401, 429],
      security: "client or token",
    },
  },
  "/authorization/introspect": {
    POST: {
      id: "introspectToken",
      form: "IntrospectRequest",
      answers: { 200: "Introspection" },
      refuses: [401, 429],
      security: "client or token",
    },
  },
  "/authorization/whoami": {
    GET: { id: "whoami", answers: { 200: "Caller" } },
  },

  "/.well-known/oauth-authorization-server": {
    GET: { id: "getServerMetadata", answers: { 200: "ServerMetadata" } },
  },
  "/.well-known/openid-configuration": {
    GET: { id: "getOpenIdConfiguration", answers: { 200: "ServerMetadata" } },
  },
  "/.well-known/oauth-protected-resource": {
    GET: { id: "getResourceMetadata", answers: { 200: "ResourceMetadata" } },
  },
  "/.well-known/jwks.json": {
    GET: { id: "getKeys", answers: { 200: "Jwks" } },
  },

  "/backend/app": {
    GET: { id: "listApps", query: PAGE, answers: { 200: "AppPage" } },
    POST: { id: "addApp", json: "NewApp", answers: { 201: "AppWithSecret" } },
  },
  "/backend/app/:client_id": {
    GET: { id: "getApp", answers: { 200: "App" } },
    PATCH: { id: "changeApp", json: "AppChange", answers: { 200: "App" } },
    DELETE: { id: "deleteApp", answers: { 204: "" } },
  },
  "/backend/app/:client_id/secret": {
    POST: {
      id: "replaceAppSecret",
      json: "NewAppSecret?",
      answers: { 200: "AppSecret" },
      refuses: [409],
    },
  },
  "/backend/user": {
    GET: { id: "listUsers", query: PAGE, answers: { 200: "UserPage" } },
    POST: { id: "addUser", json: "NewUser", answers: { 201: "User" }, refuses: [409] },
  },
  "/backend/user/:id": {
    GET: { id: "getUser", answers: { 200: "User" } },
    PATCH: { id: "changeUser", json: "UserChange", answers: { 200: "User" } },
    DELETE: { id: "deleteUser", answers: { 204: "" } },
  },
  "/backend/grant": {
    GET: { id: "listGrants", query: [...PAGE, "user", "app"], answers: { 200: "GrantPage" } },
  },
  "/backend/grant/:id": {
    DELETE: { id: "revokeGrant", answers: { 204: "" } },
  },
  "/backend/grant/revoke": {
    POST: { id: "revokeGrants", json: "Revocation", answers: { 204: "" }, refuses: [404] },
  },
  "/backend/event": {
    GET: {
      id: "listEvents",
      query: [...PAGE, "name", "event_status"],
      answers: { 200: "EventPage" },
    },
    POST: { id: "dispatchEvent", json: "NewEvent", answers: { 202: "EventId" }, isLocated: true },
  },
  "/backend/event/:id": {
    GET: { id: "getEvent", query: PAGE, answers: { 200: "EventWithDeliveries" } },
  },
  "/backend/delivery": {
    GET: {
      id: "listAllDeliveries",
      query: [...PAGE, "delivery_status", "subscription", "event"],
      answers: { 200: "ManagedDeliveryPage" },
    },
  },
  "/backend/delivery/:id": {
    GET: { id: "getAnyDelivery", answers: { 200: "ManagedDeliveryWithAttempts" } },
  },
  "/backend/delivery/:id/resend": {
    POST: { id: "resendAnyDelivery", answers: { 202: "DeliveryId" }, refuses: [409] },
  },
  "/backend/delivery/resend": {
    POST: { id: "resendFailedDeliveries", json: "Resend", answers: { 202: "ResendCount" } },
  },
  "/backend/subscription": {
    GET: { id: "listAllSubscriptions", query: PAGE, answers: { 200: "ManagedSubscriptionPage" } },
  },
  "/backend/subscription/:id": {
    GET: { id: "getAnySubscription", answers: { 200: "ManagedSubscription" } },
    PATCH: {
      id: "changeAnySubscription",
      json: "ManagedSubscriptionChange",
      answers: { 200: "ManagedSubscription" },
      refuses: [409],
    },
    DELETE: { id: "deleteAnySubscription", answers: { 204: "" } },
  },
  "/backend/cronjob": {
    GET: { id: "listCronjobs", query: PAGE, answers: { 200: "CronjobPage" } },
  },
  "/backend/cronjob/:name/run": {
    POST: { id: "runCronjob", answers: { 202: "CronjobName" }, refuses: [409] },
  },
  "/backend/key": {
    GET: { id: "listSigningKeys", query: PAGE, answers: { 200: "KeyPage" } },
    POST: { id: "rotateSigningKey", json: "NewKey?", answers: { 201: "Key" } },
  },
  "/backend/key/:kid": {
    DELETE: { id: "withdrawSigningKey", answers: { 204: "" } },
  },
  "/backend/audit": {
    GET: {
      id: "listAudit",
      query: [...PAGE, "actor", "action", "target", "since", "until"],
      answers: { 200: "AuditPage" },
    },
  },

  "/system/health": {
    GET: { id: "getHealth", answers: { 200: "Health" } },
  },
  "/system/ready": {
    GET: {
      id: "getReadiness",
      answers: { 200: "Readiness", 503: "Readiness" },
      security: "inspector",
    },
  },
  "/system/about": {
    GET: { id: "getAbout", answers: { 200: "About" } },
  },
  "/system/metrics": {
    GET: {
      id: "getMetrics",
      answers: { 200: "text/plain" },
      refuses: [401, 403],
      security: "inspector",
    },
  },

  "/openapi.json": {
    GET: {
      id: "getOpenApi",
      answers: { 200: "OpenApi" },
      refuses: [401],
      security: "token or none",
    },
  },
};
