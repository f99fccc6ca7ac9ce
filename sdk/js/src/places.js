// From lines of the bundle that the engine runs to lines of the files that the author wrote.

/**
 * A stack with the author's places alone: frames of the SDK and of the engine say nothing to him.
 *
 * @param runs `[line of the bundle, file, line of the file]`, ascending, each good up to the next; `file` is an index
 * @param files their names; null: the SDK's
 */
export function placed(stack, { runs, files }) {
  const frames = stack.split("\n").flatMap((frame) => {
    const at = /([^\s(@]+):(\d+):\d+/.exec(frame);
    const run = at && runs.findLast(([from]) => from <= Number(at[2]));
    if (!run || files[run[1]] === null) return [];
    const [from, file, line] = run;
    return frame.replace(at[0], `${files[file]}:${line + Number(at[2]) - from}`);
  });
  return frames.join("\n");
}
