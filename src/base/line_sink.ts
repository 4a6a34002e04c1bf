const MAX_HELD_BYTES = 4 * 1024 * 1024;

/**
 * Makes a sink for stdout or stderr that never throws and never waits. The stream may fail at any
 * time (full disk, reader gone) or stall. Lines that it refuses, and lines that would wait behind
 * 4 MiB of others, are dropped and counted. Node's standard streams survive errors: once the cause
 * is gone, lines are written again.
 */
export function createLineSink(stream: {
  readonly writableLength: number;
  on(event: "error", listener: () => void): unknown;
  write(text: string, done: (error?: Error | null) => void): unknown;
}) {
  let dropped = 0;
  let isCut = false; // the last line may have been written in part
  const drop = (lines: string) => {
    dropped += lines.split("\n").length - 1;
  };

  stream.on("error", () => {}); // each write gets the error, too
  return {
    /** Takes whole lines, each with its line feed. */
    write(lines: string): void {
      if (stream.writableLength + Buffer.byteLength(lines) > MAX_HELD_BYTES) return drop(lines);
      const text = isCut ? `\n${lines}` : lines;
      isCut = false;
      stream.write(text, (error) => {
        if (!error) return;
        drop(lines);
        isCut = true;
      });
    },
    /** How many lines have been dropped since the start. */
    dropped: () => dropped,
  };
}
