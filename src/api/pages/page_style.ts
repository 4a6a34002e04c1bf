import { sha256 } from "../../base/secret.ts";
import { PALETTE } from "./palette.ts";

/** The one style sheet of all pages, inline in each. */
export const pageStyle = `
:root { color-scheme: light dark; ${customProperties("light")} }
@media (prefers-color-scheme: dark) { :root { ${customProperties("dark")} } }

*, ::before, ::after { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; text-size-adjust: 100%; }
body {
  display: flex; flex-direction: column; align-items: center;
  min-height: 100vh; min-height: 100svh; margin: 0; padding: 2rem 1rem;
  background: var(--page); color: var(--text);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif;
}
header, main { width: 100%; max-width: 27rem; }
header { display: flex; align-items: center; gap: .625rem; margin-bottom: 1.25rem; }
header { font-size: 1.0625rem; font-weight: 600; letter-spacing: -.01em; }
header svg { color: var(--accent); }
header p { line-height: 1.3; }
header span, .doors span { display: block; font-weight: 400; }
a { color: var(--accent); text-underline-offset: .2em; }
a:hover { color: var(--accent-hover); }
main {
  padding: 2rem; background: var(--surface);
  border: 1px solid var(--line); border-radius: .875rem;
}
svg { flex: none; display: block; }
h1 { margin: 0; font-size: 1.5rem; line-height: 1.25; letter-spacing: -.015em; text-wrap: balance; }
h2 { margin: 1.75rem 0 .75rem; font-size: 1rem; line-height: 1.4; }
p, ul, dl, dd { min-width: 0; margin: 0; padding: 0; list-style: none; }
code, .id { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .9375em; }
code, .id, .name, .origin, .user, .wrap, dd, h1, h2, p { overflow-wrap: anywhere; }
.lead { margin-top: .375rem; color: var(--muted); }
.lead, .words, .note { text-wrap: pretty; }
.words { margin-top: .875rem; }
.note, .help, .origin, header span, .doors span { color: var(--muted); font-size: .875rem; }
.note { margin-top: 1.25rem; }
.note + .note, .help { margin-top: .5rem; }
.steps { display: flex; gap: .375rem; margin-bottom: 1.25rem; }
.steps i { flex: 1; border-top: .25rem solid var(--accent); border-radius: .125rem; }
.steps .ahead { border-color: var(--line); }

.app, .facts { background: var(--panel); border: 1px solid var(--line); border-radius: .625rem; }
.app, .message, .scopes li { display: flex; gap: .75rem; align-items: flex-start; }
.app { gap: .875rem; margin-top: 1rem; padding: .875rem 1rem; }
.app svg { margin-top: .125rem; color: var(--muted); }
.name, .origin { display: block; }
/* Stacked combining marks in a name must not cover the origin below it. */
.name { overflow: hidden; overflow: clip; font-weight: 600; }

.message {
  margin-top: 1.25rem; padding: .75rem .875rem; border: 1px solid currentColor;
  border-radius: .625rem; font-size: .9375rem;
}
.message svg { margin-top: .0625rem; }
.error { color: var(--error); background: var(--error-panel); }
.warning { color: var(--warning); background: var(--warning-panel); }
.notice { color: var(--notice); background: var(--notice-panel); }

.doors { display: grid; gap: .625rem; margin-top: 1.25rem; }
.doors a {
  display: flex; align-items: center; gap: .875rem; padding: .875rem 1rem;
  border: 1px solid var(--line); border-radius: .75rem; color: var(--text); text-decoration: none;
}
.doors a:hover { border-color: var(--accent); background: var(--panel); }
.doors svg { color: var(--accent); }

.field { margin-top: 1.25rem; }
label { display: block; margin-bottom: .375rem; font-weight: 600; font-size: .9375rem; }
input, button {
  min-height: 3rem; border: 1px solid var(--edge); border-radius: .5rem;
  background: var(--surface); color: var(--text); font: inherit;
}
input { width: 100%; padding: .5rem .875rem; }
input[readonly] { background: var(--panel); }
input[aria-invalid="true"] { border-color: var(--error); box-shadow: inset 0 0 0 1px var(--error); }
.code { letter-spacing: .1em; text-transform: uppercase; white-space: nowrap; }
button { padding: .625rem 1.25rem; font-weight: 600; cursor: pointer; }
button:hover { border-color: var(--text); }
.primary { background: var(--accent); border-color: var(--accent); color: var(--on-accent); }
.primary:hover { background: var(--accent-hover); border-color: var(--accent-hover); }
.plain {
  min-height: 2rem; padding: .25rem 0; border: 0; border-radius: .25rem; background: none;
  color: var(--accent); font-size: .9375rem; font-weight: 400; text-align: start;
  text-decoration: underline; text-underline-offset: .2em; text-decoration-thickness: .0625em;
}
.plain:hover { color: var(--accent-hover); text-decoration-thickness: .125em; }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; margin-top: 1.75rem; }
.actions button { flex: 1 1 9rem; }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
input:focus-visible { outline-offset: 1px; }

.account { margin-top: 1rem; }
.user { font-weight: 600; }
.scopes li + li { margin-top: .75rem; }
.scopes li > svg { margin-top: .125rem; color: var(--accent); }
.scopes li > span { min-width: 0; overflow-wrap: anywhere; }
.scopes .message { margin-top: 0; }
.scopes .message > svg { color: inherit; }
.scopes strong { display: block; }
.scopes .aside { color: var(--muted); font-size: .8125rem; }
details { margin-top: .75rem; }
summary { padding: .25rem 0; color: var(--accent); cursor: pointer; }
details[open] summary { margin-bottom: .5rem; }

.facts { padding: 1rem; font-size: .875rem; }
.facts dt { color: var(--muted); }
.facts dd + dt { margin-top: .625rem; }

@media (max-width: 30em) {
  body { padding: 1.25rem .75rem; }
  header { padding: 0 .25rem; margin-bottom: 1rem; }
  main { padding: 1.5rem 1.25rem; }
  .decide {
    position: sticky; bottom: 0; margin: 1.25rem -1.25rem 0; padding: .75rem 1.25rem;
    background: var(--surface); border-top: 1px solid var(--line);
  }
  .actions.decide button { flex-basis: 7rem; }
  html { scroll-padding-bottom: 6rem; }
}
@media (min-width: 30.01em) and (min-height: 45em) { body { padding-top: 10vh; } }
@media (prefers-reduced-motion: no-preference) {
  button:hover { transition: background-color .12s, border-color .12s, color .12s; }
}
@media (forced-colors: active) {
  :focus-visible { outline-color: Highlight; }
  svg { color: CanvasText !important; }
  .steps .ahead { border-color: GrayText; }
  .primary { forced-color-adjust: none; background: ButtonText; color: ButtonFace; }
  .primary { border-color: ButtonText; }
  .primary:hover { background: Highlight; border-color: Highlight; color: HighlightText; }
  input[aria-invalid="true"] { border-width: 2px; }
}
`;

/** The CSP source that allows this style sheet alone (CSP3 §2.3.1, hash-source). */
export const pageStyleSource = `'sha256-${sha256(pageStyle).toString("base64")}'`;

function customProperties(scheme: "light" | "dark"): string {
  const properties = Object.entries(PALETTE).map(([role, { [scheme]: colour }]) =>
    `--${role.replace(/[A-Z]/g, "-$&").toLowerCase()}: ${colour};`
  );
  return properties.join(" ");
}
