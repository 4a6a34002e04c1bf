/**
 * A reporter of node:test: the files in which a test failed, one a line.
 *
 * @param {AsyncIterable<{ type: string, data: { file?: string } }>} events
 */
export default async function* failedFiles(events) {
  const files = new Set();
  for await (const { type, data } of events) {
    if (type === "test:fail" && data.file !== undefined) files.add(data.file);
  }
  yield [...files].map((file) => `${file}\n`).join("");
}
