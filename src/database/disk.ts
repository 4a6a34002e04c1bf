import { statfs } from "node:fs/promises";

/** The space of a file system: what this process may still use, and in all. */
export type Disk = Readonly<Record<"freeBytes" | "totalBytes", number>>;

const LOOK_MS = 60_000;

/** Makes a function that measures the disk of a folder; it returns undefined if that fails. */
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
