import { notify } from "./parts.ts";

/** Which deliveries are sent again, and by whose operations. */
interface Wanted {
  readonly base: string;
  readonly subscription: string;
  readonly failingSince?: string | undefined;
}

/** Stands in until the dialog is there. */
export function openResend({ subscription }: Wanted): void {
  notify(`${subscription}: not made yet.`);
}
