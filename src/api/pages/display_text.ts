// Embeddings, overrides and isolates: a lone closing one would end the <bdi> around the text.
const BIDI_CONTROLS = /[\u202a-\u202e\u2066-\u2069]/g;
const BREAKS = /[\p{Cc}\p{Zl}\p{Zp}\s]+/gu;
// U+2800 is a braille cell without dots: a symbol that shows nothing.
const INVISIBLE = /[\p{Default_Ignorable_Code_Point}\p{C}\p{Z}\u2800]/gu;

/**
 * Returns untrusted text as one line that is safe to show inside `<bdi>`: direction controls are
 * taken out, control characters and line breaks become spaces. Text without any visible character
 * becomes `fallback`.
 */
export function displayText(raw: string, fallback: string): string {
  const text = raw.toWellFormed().replace(BIDI_CONTROLS, "").replace(BREAKS, " ").trim();
  return text.replace(INVISIBLE, "") === "" ? fallback : text;
}
