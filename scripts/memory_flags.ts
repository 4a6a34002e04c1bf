/**
 * What Node is started with, by `npm start` and in README's unit too: V8 would rather have memory
 * than collect what callbacks leave behind, and these keep a full delivery below 200 MB.
 */
export const MEMORY_FLAGS = ["--max-old-space-size=1024", "--max-semi-space-size=12"] as const;
