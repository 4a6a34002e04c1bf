import assert from "node:assert/strict";
import { test } from "node:test";
import { pathMetadataOperation } from "../../../src/api/authorization/metadata.ts";
import { consumer } from "../../../src/api/operation.ts";
import { createRouter } from "../../../src/api/router.ts";

const METADATA = "/.well-known/oauth-protected-resource";

const protectedAt = (path: string) =>
  consumer("GET", path, "getFile", "", { handle: () => Promise.resolve() });

const services = { issuer: "https://as.example" } as Parameters<typeof pathMetadataOperation>[1];
const find = createRouter([
  pathMetadataOperation([protectedAt("/files/*"), protectedAt("/")], services),
]);

test("a protected path / has metadata, as its challenge says (RFC 9728 §5.1)", () => {
  assert.ok(find("GET", `${METADATA}/`)?.operation);
});

test("a path that a wildcard matches has metadata, with empty segments too (RFC 9728 §3.1)", () => {
  for (const path of ["/files/a", "/files/a/b", "/files/", "/files/a//b", "/files/a/"]) {
    assert.ok(find("GET", METADATA + path)?.operation, path);
  }
  assert.equal(find("GET", METADATA), undefined);
});
