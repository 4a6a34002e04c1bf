import type { Form } from "../../base/form.ts";
import type { App } from "../../oauth/app.ts";
import { OAuthError } from "../../oauth/errors.ts";
import type { GrantType } from "../../oauth/grant_type.ts";
import { CODE_VERIFIER, verifyPkce } from "../../oauth/pkce.ts";
import { type Code, findCode, findRedeemedCode, redeemCode } from "../../store/codes.ts";
import { type Exchange, refuseReplay, renewTokens } from "./issue_grant.ts";
import { requireParameter } from "./oauth_form.ts";
import { parseHandle } from "./token_issuer.ts";

/**
 * Grant type authorization_code (RFC 6749 §4.1.3, RFC 7636 §4.6). A failed exchange leaves the code
 * unchanged. If its app presents a redeemed code again, its whole grant ends (RFC 6749 §4.1.2).
 */
export const exchangeCode: Exchange = async (request, services) => {
  const { app, form } = request;
  const handle = parseHandle(requireParameter(form, "code"));
  if (!handle) throw badCode();
  const check = (code: Code) => checkCode(code, app, form, services.now());
  return redeem(handle, "authorization_code", request, services, check);
};

/** Exchanges a stored code, as `exchangeCode` does; `check` throws if the code does not fit. */
export async function redeem(
  { grantId, hash }: { readonly grantId: string; readonly hash: Uint8Array },
  type: GrantType,
  request: Parameters<Exchange>[0],
  services: Parameters<Exchange>[1],
  check: (code: Code) => void = () => {},
): ReturnType<Exchange> {
  const { app } = request;
  const { database, revocations } = services;
  const refuse = async () => {
    const redeemed = await findRedeemedCode(database, grantId, hash);
    if (redeemed?.app !== app.id) throw badCode();
    return refuseReplay(grantId, "grant.replay", badCode(), request, services);
  };
  const code = await findCode(database, grantId, hash);
  if (!code) return refuse();
  check(code);
  const { issued, stored, scopes, nowMs } = await renewTokens(code, request, services);
  const redemption = { ...code, ...stored, type, hash, accessScopes: scopes };
  const isRedeemed = await redeemCode(database, redemption, nowMs, revocations);
  return isRedeemed ? issued : refuse();
}

function checkCode(code: Code, app: App, form: Form, nowMs: number): void {
  if (code.app !== app.id || code.untilMs <= nowMs) throw badCode();
  const redirectUri = form.get("redirect_uri");
  if (redirectUri !== undefined && redirectUri !== code.redirectUri) {
    throw new OAuthError("invalid_grant", "The redirect_uri is not that of the authorize request.");
  }
  const isBound = app.type === "confidential" || code.challenge !== null;
  if (redirectUri === undefined && !isBound) {
    throw new OAuthError("invalid_grant", "The redirect_uri of the authorize request is missing.");
  }
  const verifierError = findVerifierError(form.get("code_verifier"), code.challenge);
  if (verifierError) throw new OAuthError("invalid_grant", verifierError);
}

/** Says what is wrong with a verifier (RFC 7636 §4.6), to help the client's developer. */
function findVerifierError(verifier: string | undefined, challenge: string | null) {
  // RFC 9700 §2.1.1: a verifier for a code without a challenge is a downgrade.
  if (challenge === null) return verifier && "The code was requested without a code_challenge.";
  if (verifier === undefined) return "The code_verifier of the code_challenge is missing.";
  if (!CODE_VERIFIER.test(verifier)) {
    return "A code_verifier has 43 to 128 characters, which are letters, digits and -._~ alone.";
  }
  if (!verifyPkce(verifier, challenge)) return "The code_verifier does not fit the code_challenge.";
  return undefined;
}

/** Makes the error for any code that cannot be exchanged, the same for every reason. */
export function badCode(): OAuthError {
  return new OAuthError("invalid_grant", "The code is not valid.");
}
