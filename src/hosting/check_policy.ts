import { isOrigin } from "../base/base_url.ts";
import { isHeaderName } from "../base/http_message.ts";
import { parseRate, RATE_FORM, type RateLimit } from "../base/rate.ts";
import { corsPolicy, type CorsPolicy } from "../api/cors.ts";
import { checkFields, isPlainObject } from "./check_fields.ts";

const LIMITED_BY = ["caller", "app", "address"] as const;

/** The limit of an endpoint, or why it is none in `reasons`. */
export function checkLimit(
  value: unknown,
  scopes: readonly string[] | undefined,
  reasons: string[],
): RateLimit | undefined {
  if (value === undefined) return undefined;
  if (!isPlainObject(value)) {
    reasons.push('limit must be an object, such as { rate: "100/1m" }');
    return undefined;
  }
  checkFields(value, ["rate", "by"], "limit", reasons);
  const { rate: text, by: whose = scopes ? "caller" : "address" } = value;
  const rate = typeof text === "string" ? parseRate(text) : undefined;
  if (!rate) reasons.push(`limit.rate must be ${RATE_FORM}`);
  const by = LIMITED_BY.find((name) => name === whose);
  if (!by) reasons.push(`limit.by must be one of ${LIMITED_BY.join(", ")}`);
  else if (by !== "address" && !scopes) {
    reasons.push(`limit.by must be address: without a scope there is no ${by}`);
  }
  return rate && by && { ...rate, by };
}

/** Which pages may call an endpoint, or why that cannot be in `reasons`. */
export function checkCors(value: unknown, reasons: string[]): CorsPolicy | undefined {
  if (value === undefined) return undefined;
  if (!isPlainObject(value)) {
    reasons.push('cors must be an object, such as { origins: ["https://shop.example"] }');
    return undefined;
  }
  checkFields(value, ["origins", "headers", "expose"], "cors", reasons);
  const textsOf = (name: string, isRight: (text: string) => boolean, rule: string) => {
    const given = value[name];
    if (given === undefined) return undefined;
    const items: readonly unknown[] = Array.isArray(given) ? given : [];
    const texts = items.filter((item) => typeof item === "string").filter(isRight);
    if (!Array.isArray(given) || texts.length < items.length) {
      reasons.push(`cors.${name} must be ${rule}`);
    }
    return texts;
  };
  const origins = '"*" or a list of origins as browsers write them, such as "https://shop.example"';
  return corsPolicy(
    value["origins"] === "*" ? "*" : textsOf("origins", isOrigin, origins),
    textsOf("headers", isHeaderName, "a list of names of headers"),
    textsOf("expose", isHeaderName, "a list of names of headers"),
  );
}
