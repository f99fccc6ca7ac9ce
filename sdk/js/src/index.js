// The exports of the package: `import { plugin, text, reject } from "@opilio/plugin"`.

export { click, evaluate, pause, screenshot, scroll, waitForNetwork, waitForSelector } from "./actions.js";
export { accept, pass, reject, retry, StripProblem, unchanged } from "./answers.js";
export { bytesAt, decode, encode } from "./bytes.js";
export { count, debug, error, info, table, warn } from "./host.js";
export { plugin } from "./plugin.js";
export { choice, flag, integer, list, map, number, SettingsFault, text } from "./settings.js";
