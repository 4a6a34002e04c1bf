import { createCache } from "../../base/cache.ts";
import { sha256 } from "../../base/secret.ts";
import { nextPoll, type Poll } from "../../oauth/device_code.ts";
import { OAuthError } from "../../oauth/errors.ts";
import { DEVICE_GRANT } from "../../oauth/grant_type.ts";
import { DENIED, findDeviceCode } from "../../store/device_codes.ts";
import { badCode, redeem } from "./exchange_code.ts";
import type { Exchange } from "./issue_grant.ts";
import { checkOwnResource, requireParameter } from "./oauth_form.ts";

/**
 * Makes the exchange of device codes (RFC 8628 §3.4, §3.5). A poll writes nothing to the database:
 * only the memory of this process knows when a device polled last.
 */
export function createDeviceExchange(): Exchange {
  const polls = createCache<Poll>(20_000); // more than can wait at once
  return async (request, services) => {
    const { database, now } = services;
    const hash = sha256(requireParameter(request.form, "device_code"));
    const device = await findDeviceCode(database, "hash", hash);
    if (device?.app !== request.app.id) throw badCode();
    const { decision: grantId, untilMs } = device;
    if (grantId === DENIED) throw new OAuthError("access_denied", "The user did not allow it.");
    await checkOwnResource(request.form, services); // on every poll, not only the last
    if (untilMs <= now()) throw new OAuthError("expired_token", "The device_code has expired.");
    if (grantId !== null) return redeem({ grantId, hash }, DEVICE_GRANT, request, services);
    const key = hash.toString("base64url");
    const poll = nextPoll(polls.get(key), now());
    polls.set(key, poll);
    throw poll.isEarly
      ? new OAuthError("slow_down", `Wait ${poll.intervalMs / 1_000} seconds between two polls.`)
      : new OAuthError("authorization_pending", "The user has not decided yet.");
  };
}
