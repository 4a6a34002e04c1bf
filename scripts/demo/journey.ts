import type { DemoStage } from "./stage.ts";
import type { Story } from "./story.ts";
import type { Visitor } from "./visitor.ts";

/** What every step works with. */
export interface Journey {
  readonly stage: DemoStage;
  readonly story: Story;
  readonly visitor: Visitor;
  readonly username: string;
  readonly password: string;
}

/** An app as its developer knows it. */
export interface DemoApp {
  readonly id: string;
  readonly secret: string;
  readonly redirectUri: string;
}

/** Wait before each of the three resends. */
export const RESEND_DELAYS_MS: readonly number[] = [200, 400, 600];
