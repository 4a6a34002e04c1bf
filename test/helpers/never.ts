/** The signal of what is never aborted. */
export const NEVER = new AbortController().signal;
