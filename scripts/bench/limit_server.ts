/**
 * The upper limit for any server on node:http: `node limit_server.ts MODE [ANSWER]`.
 * `answer` returns the same bytes to every request, `echo` returns the body of each request,
 * `token` parses a token request's form, signs an ES256 token and stores nothing, `receive`
 * accepts callbacks.
 */
import { generateKeyPairSync, randomUUID, sign } from "node:crypto";
import { createServer, type IncomingMessage, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";

/** One response, as it is given to mode `answer`. */
export interface FixedResponse {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const [mode = "", given = ""] = process.argv.slice(2);

function listenerOf(): RequestListener {
  switch (mode) {
    case "answer":
      return respondAlike(JSON.parse(given));
    case "echo":
      return echo;
    case "token":
      return token();
    case "receive":
      return receive();
    default:
      throw new Error(`no mode ${mode}`);
  }
}

function respondAlike({ headers, body }: FixedResponse): RequestListener {
  const all = { ...headers, "Content-Length": Buffer.byteLength(body) };
  return (_request, response) => void response.writeHead(200, all).end(body);
}

const JSON_TYPE = { "Content-Type": "application/json" };

const echo: RequestListener = (request, response) => {
  read(request, (body) => {
    response.writeHead(200, { ...JSON_TYPE, "Content-Length": Buffer.byteLength(body) }).end(body);
  });
};

function token(): RequestListener {
  const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const key = { key: privateKey, dsaEncoding: "ieee-p1363" } as const;
  const header = encode({ alg: "ES256", typ: "at+jwt", kid: randomUUID() });
  const headers = { ...JSON_TYPE, "Cache-Control": "no-store", Pragma: "no-cache" };
  return (request, response) => {
    read(request, (text) => {
      const form = new URLSearchParams(text);
      const basic = request.headers.authorization?.slice("Basic ".length) ?? "";
      const client = form.get("client_id") ?? Buffer.from(basic, "base64").toString().split(":")[0];
      const scope = form.get("scope") ?? "consumer orders";
      const iat = Math.floor(Date.now() / 1000);
      const claims = {
        iss: url(),
        sub: client,
        aud: url(),
        client_id: client,
        iat,
        exp: iat + 3600,
        jti: randomUUID(),
        scope,
      };
      const signed = `${header}.${encode(claims)}`;
      const signature = sign("sha256", Buffer.from(signed), key).toString("base64url");
      const body = JSON.stringify({
        access_token: `${signed}.${signature}`,
        token_type: "bearer",
        expires_in: 3600,
        refresh_token: randomUUID() + randomUUID(),
        scope,
      });
      response.writeHead(200, { ...headers, "Content-Length": Buffer.byteLength(body) }).end(body);
    });
  };
}

/** Records how old the event of each callback is; GET returns all ages, in milliseconds. */
function receive(): RequestListener {
  let latenciesMs: number[] = [];
  return (request, response) => {
    if (request.method === "GET") {
      response.end(JSON.stringify(latenciesMs));
      latenciesMs = [];
      return;
    }
    const atMs = performance.timeOrigin + performance.now();
    read(request, (body) => {
      const { dispatched_at: dispatchedAtMs }: { dispatched_at: number } = JSON.parse(body);
      latenciesMs.push(atMs - dispatchedAtMs);
      response.writeHead(204).end();
    });
  };
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

function read(request: IncomingMessage, done: (body: string) => void): void {
  let body = "";
  request.setEncoding("utf8");
  request.on("data", (chunk: string) => {
    body += chunk;
  });
  request.on("end", () => done(body));
}

function url(): string {
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const server = createServer({ keepAliveTimeout: 65_000, noDelay: true }, listenerOf());
server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ url: url() })));
