import { STATUS_CODES } from "node:http";
import { inspect, isDeepStrictEqual, styleText } from "node:util";
import { bodyLines, headerLines, parameterLines, shortenDeep } from "./story_text.ts";

/** A difference from what is documented; the demo ends with it. */
export class DifferenceError extends Error {
  override readonly name = "DifferenceError";
}

/** A response to print. */
export interface Told {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
}

/** The output of the demo for a person, on a terminal or in a file. */
export interface Story {
  /** Prints the beginning, with the meaning of the signs. */
  begin(): void;
  /** Begins a step: says what happens, and why. */
  step(title: string, why: string): void;
  /** Prints a line on its own, such as a command, after its sign. */
  line(sign: string, text: string): void;
  /** Prints several lines: a body, a record. */
  block(value: unknown): void;
  /** Prints a request: method and address, the headers that matter, and the body. */
  sent(
    method: string,
    address: string,
    headers?: Readonly<Record<string, string>>,
    body?: unknown,
  ): void;
  /** Prints a response with its body; `page` describes a page in words. */
  received(response: Told, page?: string): void;
  /** Compares with what is documented, and throws DifferenceError where they differ. */
  check(claim: string, actual: unknown, expected: unknown): void;
  /** Prints the end; `seconds` is how long the demo took. */
  end(seconds: number): void;
}

type Style = Parameters<typeof styleText>[0];

/** The response headers that matter to a reader. */
const SHOWN = ["www-authenticate", "location", "retry-after"];
const LONG_QUERY = 60;

/** Prints the demo to `out`, in colour if that is a terminal that supports it. */
export function createStory(out: NodeJS.WriteStream): Story {
  let steps = 0;
  let checks = 0;
  const seenQueries = new Set<string>();
  const style = (format: Style, text: string) => styleText(format, text, { stream: out });
  const print = (text = "") => void out.write(`${text}\n`);
  const printLine = (sign: string, text: string) => print(`    ${sign} ${text}`);
  const printBlock = (lines: readonly string[], dress = (text: string) => text) => {
    for (const line of lines) print(`      ${dress(line)}`);
  };
  const dim = (text: string) => style("dim", text);

  /** Splits a long query into lines, the first time that it comes. */
  function splitAddress(address: string): [short: string, parameters: string[]] {
    const [path = "", query = ""] = address.split("?");
    if (query.length <= LONG_QUERY) return [address, []];
    if (seenQueries.has(query)) return [`${path}?… ${dim("(the same query)")}`, []];
    seenQueries.add(query);
    return [`${path}?…`, parameterLines(new URLSearchParams(query))];
  }

  return {
    begin() {
      print(style("bold", "Gatepost, from its first start to its last token"));
      print(dim("→ request   ← response   ⇠ callback at the subscriber   ✓ as documented"));
    },
    step(title, why) {
      steps += 1;
      print();
      print(style("bold", `${String(steps).padStart(2)}  ${title}`));
      print(`    ${dim(why)}`);
    },
    line: printLine,
    block: (value) => printBlock(bodyLines(value)),
    sent(method, address, headers = {}, body) {
      const [short, parameters] = splitAddress(address);
      printLine(style("cyan", "→"), `${method} ${short}`);
      printBlock([...parameters, ...headerLines(headers)], dim);
      if (body !== undefined) printBlock(bodyLines(body));
    },
    received({ status, headers, text }, page) {
      const colour = status < 400 ? "green" : "yellow";
      printLine(style(colour, "←"), style(colour, `${status} ${STATUS_CODES[status] ?? ""}`));
      for (const name of SHOWN) {
        const value = headers.get(name);
        if (value === null) continue;
        const [short, parameters] = name === "location" ? splitAddress(value) : [value, []];
        const indented = parameters.map((line) => `  ${line}`);
        printBlock([...headerLines({ [name]: short }), ...indented], dim);
      }
      if (page !== undefined) printBlock([page]);
      else if (text !== "") printBlock(bodyLines(text));
    },
    check(claim, actual, expected) {
      checks += 1;
      if (isDeepStrictEqual(actual, expected)) return printLine(style("green", "✓"), claim);
      printLine(style("red", "✗"), claim);
      const show = (value: unknown) => inspect(shortenDeep(value), { depth: 6 });
      printBlock(`expected ${show(expected)}\nbut got  ${show(actual)}`.split("\n"));
      throw new DifferenceError(`step ${steps}: ${claim}`);
    },
    end(seconds) {
      print();
      const took = `${steps} steps, ${checks} checks, ${seconds.toFixed(1)} s`;
      print(`${style(["bold", "green"], "All as documented.")} ${dim(took)}`);
    },
  };
}
