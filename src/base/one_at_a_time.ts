/** Makes a function that runs once at a time. A call during a run gets the promise of that run. */
export function oneAtATime<T>(run: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | undefined;
  return () => running ??= run().finally(() => running = undefined);
}
