import { createSocket } from "node:dgram";
import { once } from "node:events";

/** The response codes instead of addresses (RFC 1035 §4.1.1). */
const CODES = { "failed": 2, "no such name": 3, "refused": 5 } as const;

/** The response to one question; `hang` means that there is none. */
export type DnsAnswer = "hang" | keyof typeof CODES | readonly string[];
export type Answerer = (name: string, type: "A" | "AAAA", asked: number) => DnsAnswer;

export interface DnsServer {
  /** For Resolver.setServers(). */
  readonly address: string;
  /** How often a name and type has been asked for. */
  asked(name: string, type: "A" | "AAAA"): number;
  close(): void;
}

const TYPES = { A: 1, CNAME: 5, AAAA: 28 } as const;

/**
 * A name server on a UDP port of loopback (RFC 1035 §4.1). An answer that is not an address is an
 * alias (CNAME), whose target all later answers belong to.
 */
export async function openDnsServer(answer: Answerer): Promise<DnsServer> {
  const socket = createSocket("udp4");
  const counts = new Map<string, number>();
  socket.on("message", (query, peer) => {
    const { name, type, end } = readQuestion(query);
    if (type !== "A" && type !== "AAAA") return;
    const asked = (counts.get(`${type} ${name}`) ?? 0) + 1;
    counts.set(`${type} ${name}`, asked);
    const given = answer(name, type, asked);
    if (given === "hang") return;
    const records = typeof given === "string" ? [] : writeRecords(name, type, given);
    const header = Buffer.alloc(12);
    query.copy(header, 0, 0, 2);
    header.writeUInt16BE(0x8180 | (typeof given === "string" ? CODES[given] : 0), 2);
    header.writeUInt16BE(1, 4);
    header.writeUInt16BE(records.length, 6);
    socket.send(Buffer.concat([header, query.subarray(12, end), ...records]), peer.port);
  });
  socket.bind(0, "127.0.0.1");
  await once(socket, "listening");
  return {
    address: `127.0.0.1:${socket.address().port}`,
    asked: (name, type) => counts.get(`${type} ${name}`) ?? 0,
    close: () => socket.close(),
  };
}

function readQuestion(query: Buffer) {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length).toLowerCase());
    at += 1 + length;
  }
  const number = query.readUInt16BE(at + 1);
  const type = number === TYPES.A ? "A" : number === TYPES.AAAA ? "AAAA" : undefined;
  return { name: labels.join("."), type, end: at + 5 };
}

function writeRecords(name: string, type: "A" | "AAAA", answers: readonly string[]): Buffer[] {
  let owner = name;
  return answers.map((text) => {
    if (!/^[\d.]+$|:/.test(text)) {
      const record = writeRecord(owner, TYPES.CNAME, writeName(text));
      owner = text;
      return record;
    }
    return writeRecord(owner, TYPES[type], writeAddress(text));
  });
}

function writeRecord(owner: string, type: number, data: Buffer): Buffer {
  const fixed = Buffer.alloc(10);
  fixed.writeUInt16BE(type, 0);
  fixed.writeUInt16BE(1, 2); // class IN, then a TTL of 0
  fixed.writeUInt16BE(data.length, 8);
  return Buffer.concat([writeName(owner), fixed, data]);
}

function writeName(name: string): Buffer {
  const labels = name.split(".").map((label) => `${String.fromCharCode(label.length)}${label}`);
  return Buffer.from(`${labels.join("")}\0`, "latin1");
}

/** IPv4, or IPv6 with all of its eight groups or with one "::". */
function writeAddress(text: string): Buffer {
  if (!text.includes(":")) return Buffer.from(text.split(".").map(Number));
  const [head = [], tail = []] = text.split("::").map((half) => half.split(":").filter(Boolean));
  const zeros = new Array<string>(8 - head.length - tail.length).fill("0");
  const groups = [...head, ...zeros, ...tail].map((group) => group.padStart(4, "0"));
  return Buffer.from(groups.join(""), "hex");
}
