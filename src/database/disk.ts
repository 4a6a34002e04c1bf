import { statfs } from "node:fs/promises";

/** How much room a file system has for this process, and in all. */
export type Disk = Readonly<Record<"freeBytes" | "totalBytes", number>>;

const LOOK_MS = 60_000;

/** Makes the reader of the disk that a folder is on; undefined where the system does not say. */
export function createDiskReader(folder: string, elapsedMs = () => performance.now()) {
  let lookedMs = -LOOK_MS;
  let disk: Promise<Disk | undefined> | undefined;
  return async () => {
    if (elapsedMs() - lookedMs < LOOK_MS) return disk;
    lookedMs = elapsedMs();
    const sizes = statfs(folder).then(({ bavail, blocks, bsize }) =>
      ({ freeBytes: bavail * bsize, totalBytes: blocks * bsize })
    );
    return disk = sizes.catch(() => undefined);
  };
}
