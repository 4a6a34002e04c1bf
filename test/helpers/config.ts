import assert from "node:assert/strict";
import { type Config, parseConfig } from "../../src/config.ts";

export const SECRET_KEY = Buffer.from("0123456789abcdef0123456789ABCDEF").toString("base64");
export const METRICS_TOKEN = "m3tr1cs-t0ken-of-the-test";
export const ADMIN_PASSWORD = "correct horse battery";

type Env = Readonly<Record<string, string | undefined>>;

/** The configuration of this environment, which must be valid. */
export function configOf(env: Env): Config {
  const result = parseConfig(env);
  if (!result.ok) assert.fail(result.errors.join("\n"));
  return result.config;
}

export function errorsOf(env: Env): readonly string[] {
  const result = parseConfig(env);
  return result.ok ? [] : result.errors;
}

/** The only error of one variable that has this value, all others being unset. */
export function errorOf(name: string, value: string): string {
  const errors = errorsOf({ [`GATEPOST_${name}`]: value });
  assert.equal(errors.length, 1, `${name}=${JSON.stringify(value)}: ${errors.join(" | ")}`);
  const [error = ""] = errors;
  assert.ok(error.startsWith(`GATEPOST_${name}: `), error);
  assert.match(error, /^[\x20-\x7e…]+$/);
  return error;
}
