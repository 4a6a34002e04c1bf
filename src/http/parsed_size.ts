/** The most bytes of memory that values take for each such character of JSON or a form. */
const COSTS = new Uint8Array(256);
for (const character of "{[&") COSTS[character.charCodeAt(0)] = 64;
COSTS[":".charCodeAt(0)] = 128; // an object of its own shape, as `{"99":0}`: 200 and more in all
COSTS[",".charCodeAt(0)] = 32;

/** The start of a part of multipart/form-data, and the most memory that a small part takes. */
const [PART, PART_COST] = ["\r\n--", 1400];

/**
 * Returns the most bytes that the values parsed from a body of this type take. JSON takes up to 40
 * times its length, and more for brackets, commas and colons in strings, which count as if they
 * were outside. The content of strings is no longer than the body.
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
