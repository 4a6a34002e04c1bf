/** Bytes that a value takes in memory at most for each of these of a JSON text or a form. */
const COSTS = new Uint8Array(256);
for (const character of "{[&") COSTS[character.charCodeAt(0)] = 64;
COSTS[":".charCodeAt(0)] = 128; // an object of its own shape, as `{"99":0}`: 200 and more in all
COSTS[",".charCodeAt(0)] = 32;

/** A part of multipart/form-data that is a file, however small that is. */
const [PART, PART_COST] = ["\r\n--", 1400];

/**
 * How many bytes the values take at most that are made of a body of this type: of JSON up to 40
 * times as many as it has, and more for brackets, commas and colons in its strings, which it counts
 * as if they were outside. What its strings hold is no more than the body.
 */
export function estimateParsed(type = "", body: Buffer): number {
  let bytes = body.length;
  if (type === "application/json" || /json|urlencoded/i.test(type)) {
    for (let index = 0; index < body.length; index++) bytes += COSTS[body[index] ?? 0] ?? 0;
  } else if (/^multipart\//i.test(type)) {
    for (let at = 0; (at = body.indexOf(PART, at)) >= 0; at++) bytes += PART_COST;
  } else return 0;
  return bytes;
}
