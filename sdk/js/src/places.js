// Maps lines of the bundle to lines of the author's files.

/**
 * Returns a stack with the author's files and lines, without frames of the SDK and the engine.
 *
 * @param runs `[line of the bundle, index of the file, line of the file]`, ascending. Each applies up to the line of the next
 * @param files names of the files; null for files of the SDK
 */
export function mapStack(stack, { runs, files }) {
  const frames = stack.split("\n").flatMap((frame) => {
    const at = /([^\s(@]+):(\d+):\d+/.exec(frame);
    const run = at && runs.findLast(([from]) => from <= Number(at[2]));
    if (!run || files[run[1]] === null) return [];
    const [from, file, line] = run;
    return frame.replace(at[0], `${files[file]}:${line + Number(at[2]) - from}`);
  });
  return frames.join("\n");
}
