/** Something that is wrong, or is left to be set before others use the service. */
export interface Problem extends Readonly<Record<"id" | "kind" | "title" | "detail", string>> {
  readonly since: string | null;
  readonly link?: string;
  readonly muted_until?: string;
}

/** Whether it is left to be set: its place is among the settings. */
export const isSetting = ({ kind }: Problem) => kind === "setting";

/** Whether it is to be shown as wrong now. */
export const isOpen = (problem: Problem) => !isSetting(problem) && !problem.muted_until;
