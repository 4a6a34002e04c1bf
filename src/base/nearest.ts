/**
 * Returns the word that was most likely meant, or undefined when none is near: a beginning of it,
 * or more than it, was typed, or at most a third of its letters are wrong, missing, too many or
 * swapped. Case does not count.
 */
export function nearest(typed: string, words: readonly string[]): string | undefined {
  const given = typed.slice(0, 80).toLowerCase();
  const near = words
    .map((word) => ({ word, distance: distance(given, word.toLowerCase()) }))
    .filter(({ word, distance }) => distance <= Math.max(1, Math.ceil(word.length / 3)))
    .sort((a, b) => a.distance - b.distance);
  return near[0]?.word;
}

function distance(given: string, word: string): number {
  const [part, whole] = given.length < word.length ? [given, word] : [word, given];
  return part.length > 1 && whole.startsWith(part) ? 0 : editDistance(given, word);
}

/** How many letters to insert, remove, replace or swap with their neighbour. */
function editDistance(from: string, to: string): number {
  const rows: number[][] = [Array.from({ length: to.length + 1 }, (_, index) => index)];
  const at = (row: number, column: number) => rows[row]?.[column] ?? Infinity;
  for (let i = 1; i <= from.length; i++) {
    rows[i] = [i];
    for (let j = 1; j <= to.length; j++) {
      const isSwap = i > 1 && j > 1 && from[i - 1] === to[j - 2] && from[i - 2] === to[j - 1];
      rows[i]?.push(Math.min(
        at(i - 1, j) + 1,
        at(i, j - 1) + 1,
        at(i - 1, j - 1) + (from[i - 1] === to[j - 1] ? 0 : 1),
        isSwap ? at(i - 2, j - 2) + 1 : Infinity,
      ));
    }
  }
  return at(from.length, to.length);
}
