/** The colours of the pages by role; every pair that meets on a page is tested for its contrast. */
export interface Palette {
  /** Behind the card. */
  readonly page: string;
  /** The card, and the inside of fields. */
  readonly surface: string;
  /** The app's panel, inside the card. */
  readonly panel: string;
  readonly text: string;
  /** Secondary text. */
  readonly muted: string;
  /** Decorative lines: they carry no meaning of their own. */
  readonly line: string;
  /** Edges of fields and secondary buttons. */
  readonly edge: string;
  /** Primary button, links, focus ring, mark. */
  readonly accent: string;
  readonly accentHover: string;
  readonly onAccent: string;
  readonly error: string;
  readonly errorPanel: string;
  readonly warning: string;
  readonly warningPanel: string;
  readonly notice: string;
  readonly noticePanel: string;
}

/** For prefers-color-scheme: light, and where the browser says nothing. */
export const lightPalette: Palette = {
  page: "#eef1f3",
  surface: "#ffffff",
  panel: "#f4f7f8",
  text: "#15212b",
  muted: "#4c5a66",
  line: "#d5dce1",
  edge: "#7b8894",
  accent: "#0d5c63",
  accentHover: "#0a474d",
  onAccent: "#ffffff",
  error: "#9f1d1d",
  errorPanel: "#fdf1f0",
  warning: "#774500",
  warningPanel: "#fdf5e3",
  notice: "#17583a",
  noticePanel: "#eef8f1",
};

/** For prefers-color-scheme: dark. */
export const darkPalette: Palette = {
  page: "#0e1419",
  surface: "#172027",
  panel: "#1e2931",
  text: "#e9eef2",
  muted: "#a9b6c1",
  line: "#2e3b45",
  edge: "#74838f",
  accent: "#6cc5c4",
  accentHover: "#93dad8",
  onAccent: "#06201f",
  error: "#ffb3aa",
  errorPanel: "#381c1b",
  warning: "#f3c873",
  warningPanel: "#322710",
  notice: "#93d9ae",
  noticePanel: "#152c20",
};
