/**
 * The colours of the pages by role, for each value of prefers-color-scheme (light where the browser
 * has none). Every pair that meets on a page is tested for its contrast.
 */
export const PALETTE = {
  page: { light: "#eef1f3", dark: "#0e1419" }, // behind the card
  surface: { light: "#ffffff", dark: "#172027" }, // the card, and the inside of fields
  panel: { light: "#f4f7f8", dark: "#1e2931" }, // the app's panel, inside the card
  text: { light: "#15212b", dark: "#e9eef2" },
  muted: { light: "#4c5a66", dark: "#a9b6c1" }, // secondary text
  line: { light: "#d5dce1", dark: "#2e3b45" }, // decorative: without a meaning of its own
  edge: { light: "#7b8894", dark: "#74838f" }, // of fields and secondary buttons
  accent: { light: "#0d5c63", dark: "#6cc5c4" }, // primary button, links, focus ring, mark
  accentHover: { light: "#0a474d", dark: "#93dad8" },
  onAccent: { light: "#ffffff", dark: "#06201f" },
  error: { light: "#9f1d1d", dark: "#ffb3aa" },
  errorPanel: { light: "#fdf1f0", dark: "#381c1b" },
  warning: { light: "#774500", dark: "#f3c873" },
  warningPanel: { light: "#fdf5e3", dark: "#322710" },
  notice: { light: "#17583a", dark: "#93d9ae" },
  noticePanel: { light: "#eef8f1", dark: "#152c20" },
};
