// The chosen colours, before anything is painted: a module would come too late and flash.
"use strict";
try {
  const chosen = localStorage.getItem("opilio-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // Storage may be forbidden; then it is as the system has it.
}
