import { statfs } from "node:fs/promises";

/** How much room a file system has for this process, and in all. */
export type Disk = Readonly<Record<"freeBytes" | "totalBytes", number>>;

const LOOK_MS = 60_000;

/** Makes the reader of the disk that a folder is on, looked at once a minute at most. */
export function createDiskReader(folder: string, elapsedMs = () => performance.now()) {
  let last: { readonly disk: Promise<Disk | undefined>; readonly atMs: number } | undefined;

  /** Undefined where the system does not say. */
  const look = () =>
    statfs(folder).then(
      ({ bavail, blocks, bsize }) => ({ freeBytes: bavail * bsize, totalBytes: blocks * bsize }),
      () => undefined,
    );

  return (): Promise<Disk | undefined> => {
    const atMs = elapsedMs();
    if (!last || atMs - last.atMs >= LOOK_MS) last = { disk: look(), atMs };
    return last.disk;
  };
}
