// Zooms the maps of a page in and out, so that the archive has the tiles of these levels. A map loads only visible tiles. At the
// end, the map has its initial level again.

import {
  click, count, decode, encode, integer, plugin, SettingsFault, text, waitForNetwork, type Action, type ActionResult,
  type StepPlan,
} from "@opilio/plugin";

/** Longest wait for the tiles of a level, in milliseconds. */
const TILES_WAIT_MAX = 5000;

export default plugin({
  name: "map-zoom",
  summary: "Zooms maps in and out, so that their tiles are archived.",
  handles: { mediaTypes: ["text/html", "application/xhtml+xml"] },
  settings: {
    "zoom-in": text(
      ".leaflet-control-zoom-in:not(.leaflet-disabled), .ol-zoom-in, .maplibregl-ctrl-zoom-in:not([disabled]), " +
        ".mapboxgl-ctrl-zoom-in:not([disabled])",
      "CSS selector of the buttons that zoom in.",
      { overridable: true },
    ),
    "zoom-out": text(
      ".leaflet-control-zoom-out:not(.leaflet-disabled), .ol-zoom-out, .maplibregl-ctrl-zoom-out:not([disabled]), " +
        ".mapboxgl-ctrl-zoom-out:not([disabled])",
      "CSS selector of the buttons that zoom out.",
      { overridable: true },
    ),
    "levels-in": integer(2, "Number of levels to zoom in from the initial level of the map.", { overridable: true, minimum: 0, maximum: 12 }),
    "levels-out": integer(2, "Number of levels to zoom out from the initial level.", { overridable: true, minimum: 0, maximum: 12 }),
    "maps-max": integer(5, "Maximum number of maps on a page. They are zoomed at the same time.", { overridable: true, minimum: 1, maximum: 100 }),
  },

  configure(settings) {
    const empty = (["zoom-in", "zoom-out"] as const).filter((name) => settings[name].trim() === "");
    if (empty.length > 0) {
      throw SettingsFault.all(empty.map((name) => new SettingsFault(`/${name}`, "is empty; write a CSS selector")));
    }
    return settings;
  },

  // The memory is the number of levels that the map has been zoomed in.
  step(page, _visit, memory, settings): StepPlan | undefined {
    const zoom = (selector: string, levels: number) => clicks(selector, levels, settings["maps-max"]);
    const reached = levels(page.results);
    switch (page.step) {
      case 0:
        return { count: [settings["zoom-in"]] };
      case 1:
        // Most pages have no map. The count of an invalid selector is undefined.
        if (!page.count(settings["zoom-in"])) return undefined;
        return { actions: zoom(settings["zoom-in"], settings["levels-in"]) };
      case 2:
        return { actions: zoom(settings["zoom-out"], reached + settings["levels-out"]), memory: encode(String(reached)) };
      default: {
        const levelsIn = Number(decode(memory));
        const levelsOut = Math.max(reached - levelsIn, 0);
        count("levels", levelsIn + levelsOut);
        return { actions: zoom(settings["zoom-in"], levelsOut), finished: true };
      }
    }
  },
});

/** Returns clicks that zoom by `levels` levels. A wait follows each, or the map would skip tiles. */
function clicks(selector: string, levels: number, mapsMax: number): Action[] {
  const one = [click(selector, { atMost: mapsMax }), waitForNetwork(TILES_WAIT_MAX)];
  return Array.from({ length: levels }, () => one).flat();
}

/** Returns the number of levels by which the last step has zoomed. At the last level of a map, its button is disabled. */
function levels(results: readonly ActionResult[]): number {
  return results.filter((result) => typeof result === "object" && "clicked" in result).length;
}
