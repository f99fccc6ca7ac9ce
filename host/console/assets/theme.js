// Sets the chosen colours before the first paint. A module would run later, and the page would flash in other colours.
"use strict";
try {
  const chosen = localStorage.getItem("opilio-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then the system's colours are used.
}
