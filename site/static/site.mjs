// Pages without a studio: theme switch and offline copy.

import { dialogs, isDark, json, offline, theme } from "./dom.mjs";

document.addEventListener("click", ({ target }) => target.closest("[data-act=theme]") && theme(isDark() ? "light" : "dark"));
dialogs();
offline(json("config")?.sw);
