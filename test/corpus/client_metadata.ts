/** Where the documents below are. */
export const DOCUMENT_URL = "https://app.example/oauth/client.json";

/** Client ids from which a document is fetched. */
export const DOCUMENT_URLS: readonly string[] = [
  DOCUMENT_URL,
  "https://app.example/c",
  "https://app.example:8443/client.json",
  "https://xn--bcher-kva.example/client.json",
  "https://app.example/~team/client-metadata_1.json",
  "http://127.0.0.1:4000/client.json", // the guard decides
];

/** Client ids from which nothing is fetched. */
export const REFUSED_URLS: readonly (readonly [url: string, what: string])[] = [
  ["https://app.example", "no path"],
  ["https://app.example/", "no path but the slash"],
  ["http://app.example/client.json", "http"],
  ["http://localhost.evil.example/client.json", "http at a host that begins with localhost"],
  ["ftp://app.example/client.json", "another scheme"],
  ["file:///etc/passwd", "a file"],
  ["data:application/json,{}", "data"],
  ["javascript:alert(1)//x", "javascript"],
  ["blob:https://app.example/1", "blob"],
  ["app.example/client.json", "no scheme"],
  ["//app.example/client.json", "no scheme but an authority"],
  ["https:/app.example/client.json", "one slash"],
  ["https:app.example/client.json", "no slash"],
  ["HTTPS://app.example/client.json", "a scheme in capitals"],
  ["https://APP.example/client.json", "a host in capitals"],
  ["https://app.example:443/client.json", "the usual port"],
  ["https://app.example:/client.json", "an empty port"],
  ["https://app.example:0443/client.json", "a port with a leading zero"],
  ["https://app.example:65536/client.json", "a port out of range"],
  ["https://app.example:8443@evil.example/client.json", "a port that is a password"],
  ["https://user@app.example/client.json", "a user"],
  ["https://user:secret@app.example/client.json", "credentials"],
  ["https://@app.example/client.json", "empty credentials"],
  ["https://app.example/client.json#", "an empty fragment"],
  ["https://app.example/client.json#x", "a fragment"],
  ["https://app.example/client.json?", "an empty query"],
  ["https://app.example/client.json?x=1", "a query"],
  ["https://app.example/./client.json", "a dot segment"],
  ["https://app.example/a/../client.json", "two dots"],
  ["https://app.example/%2e%2e/client.json", "two dots, encoded"],
  ["https://app.example/a/%2E/client.json", "a dot, encoded"],
  ["https://app.example/..;/client.json", "two dots and a semicolon"],
  ["https://app.example/a%2fb", "an encoded slash"],
  ["https://app.example/a%5cb", "an encoded backslash"],
  ["https://app.example\\client.json", "a backslash"],
  ["https://app.example/a%252fb", "an encoded percent sign"],
  ["https://app.example//client.json", "an empty segment"],
  ["https://app.example/client json", "a space"],
  ["https://app.example/client.json\n", "a line break"],
  [" https://app.example/client.json", "a space at the start"],
  ["https://app.example/%00", "an encoded NUL"],
  ["https://app.example/%zz", "a broken escape"],
  ["https://bücher.example/client.json", "a host that is not ASCII"],
  ["https://app。example/client.json", "a full-width dot"],
  ["https://*.example/client.json", "a wildcard"],
  ["https://a,b.example/client.json", "a comma in the host"],
  ["https://2130706433/client.json", "loopback as one number"],
  ["https://0x7f000001/client.json", "loopback in hexadecimal"],
  ["https://0177.0.0.1/client.json", "loopback in octal"],
  ["https://127.1/client.json", "loopback with two parts"],
  ["https://[0:0:0:0:0:0:0:1]/client.json", "IPv6 loopback, not shortened"],
  ["https://[::ffff:127.0.0.1]/client.json", "mapped loopback as dotted quad"],
  [`https://app.example/${"a".repeat(2048)}`, "too long"],
];

/** The hosts of canonical client ids from which nothing is fetched. */
export const REFUSED_ADDRESSES: readonly string[] = [
  "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.0.0.1", "100.64.0.1", "169.254.169.254",
  "172.16.0.1", "192.168.0.1", "168.63.129.16", "198.18.0.1", "224.0.0.1", "255.255.255.255",
  "[::1]", "[::]", "[::ffff:7f00:1]", "[::ffff:a9fe:a9fe]", "[64:ff9b::7f00:1]", "[fd00::1]",
  "[fe80::1]", "[ff02::1]", "[2002:7f00:1::]", "[2001:0:7f00:1::]", "localhost", "a.localhost",
];

type Json = Readonly<Record<string, unknown>>;

const GOOD: Json = {
  client_id: DOCUMENT_URL,
  client_name: "Harbour Orders",
  redirect_uris: ["https://app.example/callback", "http://127.0.0.1/callback"],
};

/** Documents that are accepted, each with what is in it. */
export const TAKEN_DOCUMENTS: readonly (readonly [document: Json, what: string])[] = [
  [GOOD, "only what is needed"],
  [{ ...GOOD, client_name: undefined }, "no name"],
  [{ ...GOOD, token_endpoint_auth_method: "none" }, "the only way to authenticate"],
  [{
    ...GOOD, client_uri: "https://app.example/", logo_uri: "https://app.example/logo.png",
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
    scope: "consumer", contacts: ["x@app.example"], application_type: "native", "x-unknown": {},
  }, "members that are not used"],
  [{ ...GOOD, redirect_uris: ["com.example.app:/cb"] }, "a private-use scheme"],
  [{ ...GOOD, redirect_uris: ["http://localhost/cb"] }, "localhost"],
  [{ ...GOOD, redirect_uris: ["http://[::1]:3000/cb"] }, "IPv6 loopback"],
  [{ ...GOOD, redirect_uris: ["https://elsewhere.example/cb"] }, "another origin"],
  [{ ...GOOD, redirect_uris: ["cursor://x/cb", "https://app.example/cb"] }, "one that is ignored"],
  [{ ...GOOD, jwks: { keys: [{ kty: "EC", crv: "P-256", x: "x", y: "y" }] } }, "a public key"],
];

/** Documents that are refused, each with the reason. */
export const REFUSED_DOCUMENTS: readonly (readonly [document: unknown, what: string])[] = [
  [{}, "nothing"],
  [[], "a list"],
  [[GOOD], "a list of one"],
  ["client", "a string"],
  [null, "null"],
  [{ ...GOOD, client_id: undefined }, "no client_id"],
  [{ ...GOOD, client_id: null }, "a client_id that is null"],
  [{ ...GOOD, client_id: [DOCUMENT_URL] }, "a client_id in a list"],
  [{ ...GOOD, client_id: "https://evil.example/client.json" }, "the client_id of another document"],
  [{ ...GOOD, client_id: `${DOCUMENT_URL}/` }, "a client_id with a slash at the end"],
  [{ ...GOOD, client_id: `${DOCUMENT_URL}?` }, "a client_id with an empty query"],
  [{ ...GOOD, client_id: `${DOCUMENT_URL}#` }, "a client_id with an empty fragment"],
  [{ ...GOOD, client_id: DOCUMENT_URL.toUpperCase() }, "a client_id in capitals"],
  [{ ...GOOD, client_id: DOCUMENT_URL.replace("app.", "app.:443") }, "another spelling of it"],
  [{ ...GOOD, client_id: ` ${DOCUMENT_URL}` }, "a client_id with a space at the start"],
  [{ ...GOOD, client_id: "a0mhc0000000000000000000000" }, "the id of a registered app"],
  [{ ...GOOD, client_name: 7 }, "a name that is a number"],
  [{ ...GOOD, client_name: "" }, "an empty name"],
  [{ ...GOOD, client_name: " " }, "a name of spaces"],
  [{ ...GOOD, client_name: "a".repeat(101) }, "a name that is too long"],
  [{ ...GOOD, client_name: "a\u0000b" }, "a name with a NUL"],
  [{ ...GOOD, client_name: "a\nb" }, "a name of two lines"],
  [{ ...GOOD, client_name: { en: "x" } }, "a name by language"],
  [{ ...GOOD, redirect_uris: undefined }, "no redirect URIs"],
  [{ ...GOOD, redirect_uris: [] }, "an empty list of redirect URIs"],
  [{ ...GOOD, redirect_uris: "https://app.example/callback" }, "redirect URIs as a string"],
  [{ ...GOOD, redirect_uris: { 0: "https://app.example/callback" } }, "redirect URIs as an object"],
  [{ ...GOOD, redirect_uris: [7] }, "a redirect URI that is a number"],
  [{ ...GOOD, redirect_uris: [null, "https://app.example/callback"] }, "a null redirect URI"],
  [{ ...GOOD, redirect_uris: [["https://app.example/callback"]] }, "a redirect URI in a list"],
  [{ ...GOOD, redirect_uris: Array.from({ length: 101 }, (_, at) => `https://a.example/${at}`) },
    "too many redirect URIs"],
  ...[
    "javascript:alert(1)", "data:text/html,x", "vbscript:x", "file:///etc/passwd", "about:blank",
    "blob:https://app.example/1", "view-source:https://app.example/", "intent://x#Intent;end",
    "myapp:/cb", "cursor://x/cb", "http://app.example/cb", "http://10.0.0.1/cb", "*",
    "https://*", "https://app.example/cb#x", "https://user@app.example/cb", "/callback",
    "com.example.app", "com.example.app:cb", "com.example.app:/", "com.example.app:/c b",
    "com.example.app:/cb#x", "COM.example.app:/cb", "com..app:/cb", "urn:ietf:wg:oauth:2.0:oob",
    "http://localhost.evil.example/cb", "https://app.example/a/../cb", "http://127.0.0.2/cb",
    "http://127.1/cb", "http://0.0.0.0/cb", "http://app.localhost/cb",
  ].map((uri) => [{ ...GOOD, redirect_uris: [uri] }, `${uri} alone`] as const),
  [{ ...GOOD, client_secret: "secret" }, "a secret"],
  [{ ...GOOD, client_secret: "" }, "an empty secret"],
  [{ ...GOOD, client_secret: null }, "a secret that is null"],
  [{ ...GOOD, client_secret_expires_at: 0 }, "the expiry of a secret"],
  ...["client_secret_basic", "client_secret_post", "client_secret_jwt", "private_key_jwt",
    "tls_client_auth", "NONE", "", null, ["none"]].map((method) =>
    [{ ...GOOD, token_endpoint_auth_method: method }, `authentication by ${method}`] as const),
  [{ ...GOOD, jwks: { keys: [{ kty: "oct", k: "c2VjcmV0" }] } }, "a symmetric key"],
  [{ ...GOOD, jwks: { keys: [{ kty: "EC", crv: "P-256", x: "x", y: "y", d: "d" }] } },
    "a private key"],
  [{ ...GOOD, jwks: [] }, "keys in a list"],
  [{ ...GOOD, jwks: "keys" }, "keys as a string"],
];

/** The redirect URIs of a document; those below match one of them, or none. */
export const LISTED = [
  "https://app.example/callback", "http://127.0.0.1/cb", "http://localhost:3000/cb",
  "http://[::1]/cb", "com.example.app:/cb",
];

export const TAKEN_REDIRECTS: readonly string[] = [
  ...LISTED,
  "http://127.0.0.1:1/cb", "http://127.0.0.1:65535/cb",
  "http://localhost/cb", "http://localhost:51234/cb", "http://[::1]:8080/cb",
];

export const REFUSED_REDIRECTS: readonly string[] = [
  "https://app.example/callback/", "https://app.example/callback?x=1", "https://app.example/",
  "https://app.example:8443/callback", "https://APP.example/callback",
  "https://app.example/callback#", "http://app.example/callback", "https://evil.example/callback",
  "https://app.example/%63allback", "https://app.example@evil.example/callback",
  "https://app.example/callback ", "http://127.0.0.1/", "http://127.0.0.1:80/cb",
  "http://127.0.0.1:080/cb", "http://127.0.0.1:65536/cb", "http://127.0.0.1:/cb",
  "http://127.0.0.1:1@evil.example/cb", "http://127.0.0.1:1.evil.example/cb",
  "http://127.0.0.2/cb", "http://127.1/cb", "https://127.0.0.1/cb", "http://localhost/cb/x",
  "http://localhost.evil.example/cb", "http://user@localhost/cb", "https://localhost:3000/cb",
  "http://[::1]/CB", "http://[0:0:0:0:0:0:0:1]/cb", "com.example.app:/cb/", "com.example.app:/CB",
  "com.example.app://cb", "com.example.app.evil:/cb", "com.example.app:/cb?x",
  "javascript:alert(1)", "data:text/html,x", "",
];

/** Redirect URIs of a private-use scheme that no browser can parse (URL Standard §4.4). */
export const UNREADABLE_REDIRECTS: readonly string[] = [
  "com.example.app://h:99999/cb", "com.example.app://[bad/cb", "com.example.app://a<b/cb",
  `com.example.app:/${"x".repeat(2_048)}`,
];
