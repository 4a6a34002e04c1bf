import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { formatSigningSecret, signMessage } from "../../src/event/signature.ts";
import { findSignatureFault } from "../helpers/standard_webhooks.ts";
import { openRandom } from "../helpers/random.ts";

const NOW_SECONDS = 1_795_176_000;
const SECRET = formatSigningSecret(new Uint8Array(32).fill(7));
const OTHER = formatSigningSecret(new Uint8Array(32).fill(9));
const MESSAGE = { id: "d0abc", timestampSeconds: NOW_SECONDS, body: '{"order":1}' };

function verify(signature: string, secret: string, change: Partial<typeof MESSAGE> = {}) {
  const { id, timestampSeconds, body } = { ...MESSAGE, ...change };
  const headers = {
    "webhook-id": id,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": signature,
  };
  return findSignatureFault({ headers, body: Buffer.from(body) }, secret, NOW_SECONDS * 1000);
}

describe("formatSigningSecret()", () => {
  test("writes whsec_ and base64", () => {
    assert.equal(formatSigningSecret(Buffer.from("0123456789abcdef01234567")),
      "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3");
  });
});

describe("signMessage()", () => {
  // `printf '%s' 'msg.1674087231.{"a":1}' | openssl dgst -sha256 -hmac 0123456789abcdef01234567`
  test("gives the same signature as openssl", () => {
    const secret = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3";
    const message = { id: "msg", timestampSeconds: 1_674_087_231, body: '{"a":1}' };
    assert.equal(signMessage(message, [secret]), "v1,H/5W0rQuwlySDtkTkFq5dz2cbd8Uq1EsI4/1erzRtjE=");
  });

  test("gives a signature that verifies as Standard Webhooks specifies", () => {
    assert.equal(verify(signMessage(MESSAGE, [SECRET]), SECRET), undefined);
  });

  test("signs once for each secret in their order, and each signature verifies", () => {
    const signature = signMessage(MESSAGE, [SECRET, OTHER]);
    assert.equal(signature.split(" ").length, 2);
    assert.equal(signature.split(" ")[0], signMessage(MESSAGE, [SECRET]));
    assert.equal(verify(signature, SECRET), undefined);
    assert.equal(verify(signature, OTHER), undefined);
  });

  const forged: readonly (readonly [what: string, change: Partial<typeof MESSAGE>])[] = [
    ["another id", { id: "d0abd" }],
    ["another time", { timestampSeconds: NOW_SECONDS + 1 }],
    ["another body", { body: '{"order":2}' }],
    ["a body with one more space", { body: '{"order": 1}' }],
    ["a body without its end", { body: '{"order":1' }],
  ];
  for (const [what, change] of forged) {
    test(`gives a signature that does not verify with ${what}`, () => {
      assert.equal(verify(signMessage(MESSAGE, [SECRET]), SECRET, change), "no signature matches");
    });
  }

  test("gives a signature that does not verify with another secret", () => {
    assert.equal(verify(signMessage(MESSAGE, [OTHER]), SECRET), "no signature matches");
  });

  test("signs the body as UTF-8", (t) => {
    const random = openRandom(t);
    for (let round = 0; round < 200; round++) {
      const body = JSON.stringify(random.text('aä€😀"\\\u0000 \ud800', 40));
      const message = { ...MESSAGE, body: Buffer.from(body).toString() };
      assert.equal(verify(signMessage(message, [SECRET]), SECRET, message), undefined,
        `seed ${random.seed}: ${body}`);
    }
  });
});
