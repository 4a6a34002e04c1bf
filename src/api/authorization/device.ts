import { tooMany } from "../../base/problem.ts";
import { newSecret, sha256 } from "../../base/secret.ts";
import { described, named, optional, record, TEXT, URI } from "../../base/shape.ts";
import { DEVICE_CODE_MS, newUserCode, POLL_INTERVAL_MS } from "../../oauth/device_code.ts";
import { DEVICE_GRANT } from "../../oauth/grant_type.ts";
import { checkAppScopes } from "../../oauth/scope.ts";
import type { Services } from "../../services.ts";
import { insertDeviceCode } from "../../store/device_codes.ts";
import { byApp, type Operation } from "../operation.ts";
import { checkOwnResource, CREDENTIALS, readOAuthForm, readScope, SECONDS } from "./oauth_form.ts";
import { checkAllowed } from "./token.ts";

const DeviceForm = named("DeviceRequest", record({
  scope: optional(described("Names separated by spaces or commas.", TEXT)),
  resource: optional(described("Only this service (RFC 8707).", URI)),
  ...CREDENTIALS,
}));

const DeviceResponse = named("DeviceAnswer", described("RFC 8628, section 3.2.", record({
  device_code: described("The device polls the token endpoint with it.", TEXT),
  user_code: described("What the user types, such as BCDF-GHJK.", TEXT),
  verification_uri: described("Where the user types the user_code.", URI),
  verification_uri_complete: URI,
  expires_in: SECONDS,
  interval: SECONDS,
})));

/** POST /authorization/device (RFC 8628 §3.1): a device without a browser asks for its codes. */
export function deviceOperation(
  services: Pick<Services, "clients" | "database" | "issuer" | "now">,
): Operation {
  const { clients, database, issuer, now } = services;
  const uri = `${issuer}/authorization/verify`;
  return byApp("POST", "/authorization/device", "authorizeDevice",
    "Begin the sign-in of a device without a browser", {
    security: "client",
    limit: { count: 100, windowMs: DEVICE_CODE_MS, by: "address" },
    form: DeviceForm,
    returns: DeviceResponse,
    async handle({ request }) {
      const form = await readOAuthForm(request);
      return clients.serve(request, form, async (app) => {
        checkAllowed(app, DEVICE_GRANT);
        await checkOwnResource(form, services);
        const scopes = readScope(form);
        checkAppScopes(scopes, app);
        const [deviceCode, userCode, nowMs] = [newSecret(), newUserCode(), now()];
        const untilMs = nowMs + DEVICE_CODE_MS;
        const device = { hash: sha256(deviceCode), app: app.id, scopes, untilMs };
        if (!await insertDeviceCode(database, device, sha256(userCode), nowMs)) {
          throw tooMany("throttled", "Too many devices are waiting for their users.", 60_000);
        }
        return {
          device_code: deviceCode,
          user_code: userCode,
          verification_uri: uri,
          verification_uri_complete: `${uri}?user_code=${userCode}`,
          expires_in: DEVICE_CODE_MS / 1_000,
          interval: POLL_INTERVAL_MS / 1_000,
        };
      });
    },
  });
}
