import assert from "node:assert/strict";
import {
  mkdirSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { followLinks, identify, watchOwnFiles } from "../../src/database/own_files.ts";
import { makeFolder } from "../helpers/database.ts";

test("followLinks() follows links to links, even if the file does not exist yet", (t) => {
  const folder = realpathSync(makeFolder(t));
  const [first, second] = [join(folder, "first.db"), join(folder, "second.db")];
  const file = join(folder, "elsewhere", "gatepost.db");
  mkdirSync(join(folder, "elsewhere"));
  symlinkSync("second.db", first);
  symlinkSync("elsewhere/gatepost.db", second);
  assert.equal(followLinks(first), file);
  writeFileSync(file, "");
  assert.equal(followLinks(first), file);
});

test("followLinks() returns one of the links if they form a circle", (t) => {
  const [first, second] = ["first", "second"].map((name) => join(makeFolder(t), name));
  assert.ok(first && second);
  symlinkSync(second, first);
  symlinkSync(first, second);
  assert.ok([first, second].includes(followLinks(first)));
});

test("followLinks() follows a link to the folder of an existing file", (t) => {
  const folder = realpathSync(makeFolder(t));
  mkdirSync(join(folder, "data"));
  writeFileSync(join(folder, "data", "gatepost.db"), "");
  symlinkSync("data", join(folder, "linked"));
  const file = join(folder, "data", "gatepost.db");
  assert.equal(followLinks(join(folder, "linked", "gatepost.db")), file);
});

test("followLinks() follows 39 links, one fewer than the system", (t) => {
  const folder = realpathSync(makeFolder(t));
  for (let link = 0; link < 39; link++) symlinkSync(`${link + 1}`, join(folder, `${link}`));
  assert.equal(followLinks(join(folder, "0")), join(folder, "39"));
});

test("areInPlace() is true only while both the log and its index exist", (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  writeFileSync(path, "");
  const watch = () => watchOwnFiles(path, path, identify(path));
  for (const existing of [[], ["-wal"], ["-shm"]]) {
    for (const suffix of existing) writeFileSync(path + suffix, "");
    const files = watch();
    assert.deepEqual([files.areInPlace(), files.areInPlace()], [false, false], `${existing}`);
    for (const suffix of existing) rmSync(path + suffix);
  }
  for (const suffix of ["-wal", "-shm"]) writeFileSync(path + suffix, "");
  const files = watch();
  assert.deepEqual([files.areInPlace(), files.logBytes()], [true, 0]);
  writeFileSync(`${path}-wal`, "a log");
  assert.deepEqual([files.areInPlace(), files.logBytes()], [true, 5]);
  rmSync(`${path}-shm`);
  assert.equal(files.areInPlace(), false);
});

test("isLogGone() is true without a log if the file is the same and nobody wrote since", (t) => {
  const path = join(makeFolder(t), "gatepost.db");
  writeFileSync(path, "");
  utimesSync(path, 1_000, 1_000);
  const files = watchOwnFiles(path, path, identify(path));
  assert.deepEqual([999_999, 1_000_000].map(files.isLogGone), [false, true]);
  writeFileSync(`${path}-wal`, "");
  assert.equal(files.isLogGone(1_000_000), true);
  writeFileSync(`${path}-wal`, "a log");
  assert.equal(files.isLogGone(1_000_000), false);
  rmSync(`${path}-wal`);
  renameSync(path, `${path}.before`); // so that its inode is not used again
  writeFileSync(path, "");
  utimesSync(path, 1_000, 1_000);
  assert.equal(files.isLogGone(1_000_000), false);
});
