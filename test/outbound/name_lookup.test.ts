import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { formatAddress } from "../../src/base/address.ts";
import { createNameLookup, findInHosts, type NameLookup } from "../../src/outbound/name_lookup.ts";
import { openDnsServer } from "../helpers/dns_server.ts";
import type { Answerer, DnsServer } from "../helpers/dns_server.ts";

const HOSTS = `# hosts of this machine
127.0.0.1\tlocalhost loop # 10.0.0.1 commented
10.0.0.5   Intranet  intranet.example
10.0.0.6 intranet.example\r
fd00::5 intranet.example
#10.0.0.9 hidden.example
fe80::1%lo0 zone.example
nonsense other.example
192.0.2.7
`;

const answer: Answerer = (name, type, asked) => {
  if (name === "both.example") return type === "A" ? ["192.0.2.1", "192.0.2.2"] : ["2001:db8::1"];
  if (name === "four.example") return type === "A" ? ["192.0.2.4"] : [];
  if (name === "six.example") return type === "A" ? [] : ["2001:db8::6"];
  if (name === "half.example") return type === "A" ? ["192.0.2.3"] : "hang";
  if (name === "lost.example") return asked === 1 ? "hang" : type === "A" ? ["192.0.2.8"] : [];
  if (name === "alias.example") return type === "A" ? ["real.example", "192.0.2.9"] : [];
  if (name === "empty.example") return [];
  if (name === "failed.example") return "failed";
  if (name === "refused.example") return "refused";
  if (name === "unsure.example") return type === "A" ? "failed" : "no such name";
  if (name === "rebind.example") return type === "A" ? [`192.0.2.${asked}`] : [];
  if (name.startsWith("hang")) return "hang";
  return "no such name";
};

let server: DnsServer;
before(async () => {
  server = await openDnsServer(answer);
});
after(() => server.close());

type Options = Partial<Parameters<typeof createNameLookup>[0]>;

function create(options: Options = {}): NameLookup {
  const readHosts = async () => HOSTS;
  return createNameLookup({ timeoutMs: 2_000, servers: [server.address], readHosts, ...options });
}

async function lookUp(name: string, options: Options = {}) {
  return (await create(options)(name)).map(formatAddress);
}

const RESOLVED: readonly (readonly [string, string, readonly string[]])[] = [
  ["asks for both families and returns IPv4 first", "both.example",
    ["192.0.2.1", "192.0.2.2", "2001:db8::1"]],
  ["accepts IPv4 alone", "four.example", ["192.0.2.4"]],
  ["accepts IPv6 alone", "six.example", ["2001:db8::6"]],
  ["does not wait for a family that hangs", "half.example", ["192.0.2.3"]],
  ["asks once more if a question is lost", "lost.example", ["192.0.2.8"]],
  ["follows an alias", "alias.example", ["192.0.2.9"]],
  ["accepts a trailing dot and upper case", "FOUR.Example.", ["192.0.2.4"]],
  ["finds the hosts file's addresses", "intranet.example", ["10.0.0.5", "10.0.0.6", "fd00::5"]],
  ["finds a name of the hosts file with a trailing dot", "Intranet.", ["10.0.0.5"]],
  ["returns loopback for localhost", "localhost", ["127.0.0.1", "::1"]],
  ["returns loopback for localhost with a trailing dot", "LOCALHOST.", ["127.0.0.1", "::1"]],
  ["returns loopback for a name below localhost", "a.b.localhost", ["127.0.0.1", "::1"]],
];
for (const [what, name, expected] of RESOLVED) {
  test(`createNameLookup() ${what}`, async () => {
    assert.deepEqual(await lookUp(name), expected);
  });
}

test("createNameLookup() asks no server for names of the hosts file and localhost", async () => {
  await lookUp("intranet.example");
  await lookUp("localhost");
  assert.equal(server.asked("intranet.example", "A"), 0);
  assert.equal(server.asked("localhost", "A"), 0);
});

test("createNameLookup() asks again each time, without a cache", async () => {
  const lookup = create();
  assert.deepEqual((await lookup("rebind.example")).map(formatAddress), ["192.0.2.1"]);
  assert.deepEqual((await lookup("rebind.example")).map(formatAddress), ["192.0.2.2"]);
});

for (const name of ["missing.example", "empty.example", "unsure.example", "hidden.example", "a..b",
  "192.0.2.7 "]) {
  test(`createNameLookup() fails for ${JSON.stringify(name)}`, async () => {
    await assert.rejects(lookUp(name), { name: "EgressError", code: "NAME_LOOKUP_FAILED" });
  });
}

test("createNameLookup() works without a readable hosts file", async () => {
  const readHosts = () => Promise.reject(new Error("no access"));
  assert.deepEqual(await lookUp("four.example", { readHosts }), ["192.0.2.4"]);
});

test("createNameLookup() distinguishes a shortage from a name without an address", async () => {
  const lacking = Object.assign(new Error("open"), { code: "EMFILE" });
  const always = () => Promise.reject(lacking);
  await assert.rejects(lookUp("four.example", { readHosts: always }), lacking);
  let reads = 0;
  const fromNowOn = async () => {
    if (reads++ > 0) throw lacking; // the resolver had it too, but does not report it
    return "";
  };
  await assert.rejects(lookUp("missing.example", { readHosts: fromNowOn }), lacking);
});

test("createNameLookup() finds a shortage of descriptors without access to the hosts file", () => {
  const source = fileURLToPath(new URL("../../src", import.meta.url));
  const script = `
    import { openSync } from "node:fs";
    import { createNameLookup } from "${import.meta.resolve("../../src/outbound/name_lookup.ts")}";
    const lookup = createNameLookup({ timeoutMs: 2_000, servers: ["127.0.0.1:9"] });
    const code = () => lookup("four.example").then(String, (error) => error.code);
    const codes = [await code()];
    try { for (;;) openSync("${source}/mod.ts"); } catch {}
    console.log(...codes, await code());`;
  const node = ["--permission", `--allow-fs-read=${source}`, "--allow-net", "--input-type=module"];
  const shell = `ulimit -n 60; exec "$0" "$@"`;
  const { stdout } = spawnSync("sh", ["-c", shell, process.execPath, ...node, "-e", script]);
  assert.equal(String(stdout), "NAME_LOOKUP_UNANSWERED EMFILE\n");
});

test("createNameLookup() reports that no name server can be reached", async () => {
  const closed = await openDnsServer(answer);
  closed.close();
  const lookingUp = lookUp("four.example", { servers: [closed.address] });
  await assert.rejects(lookingUp, { name: "EgressError", code: "NAME_LOOKUP_UNANSWERED" });
});

for (const name of ["failed.example", "refused.example"]) {
  test(`createNameLookup() reports that no name server could answer for ${name}`, async () => {
    await assert.rejects(lookUp(name), { name: "EgressError", code: "NAME_LOOKUP_UNANSWERED" });
  });
}

test("createNameLookup() has time for the next name server if the first is dead", async (t) => {
  const dead = await openDnsServer(() => "hang");
  t.after(() => dead.close());
  const servers = [dead.address, server.address];
  assert.deepEqual(await lookUp("four.example", { timeoutMs: 750, servers }), ["192.0.2.4"]);
  assert.ok(dead.asked("four.example", "A") > 0);
});

test("createNameLookup() ends at its own timeout when no server answers", async () => {
  const begun = performance.now();
  const lookingUp = lookUp("hang.example", { timeoutMs: 200 });
  await assert.rejects(lookingUp, { code: "NAME_LOOKUP_UNANSWERED" });
  const tookMs = performance.now() - begun;
  assert.ok(tookMs >= 190 && tookMs < 1_500, `took ${tookMs} ms`);
});

test("createNameLookup() ends at its own timeout when the hosts file hangs", async () => {
  const readHosts = () => new Promise<string>(() => {});
  const lookingUp = lookUp("four.example", { timeoutMs: 100, readHosts });
  await assert.rejects(lookingUp, { code: "NAME_LOOKUP_UNANSWERED" });
});

test("createNameLookup() finds other names while many hang", async () => {
  const lookup = create({ timeoutMs: 1_500 });
  const order: string[] = [];
  const hanging = Array.from({ length: 50 }, (_, index) =>
    assert.rejects(lookup(`hang${index}.example`)).then(() => void order.push("hung")),
  );
  await lookup("four.example");
  order.push("answered");
  await Promise.all(hanging);
  assert.equal(order[0], "answered");
});

test("findInHosts() ignores comments, lines without names, and invalid addresses", () => {
  assert.deepEqual(findInHosts(HOSTS, "hidden.example"), []);
  assert.deepEqual(findInHosts(HOSTS, "10.0.0.1"), []);
  assert.deepEqual(findInHosts(HOSTS, "zone.example"), []);
  assert.deepEqual(findInHosts(HOSTS, "other.example"), []);
  assert.deepEqual(findInHosts(HOSTS, "192.0.2.7"), []);
  assert.deepEqual(findInHosts(HOSTS, "").map(formatAddress), []);
  assert.deepEqual(findInHosts(HOSTS, "loop").map(formatAddress), ["127.0.0.1"]);
});
