// Pages without a studio: theme switch and offline copy.

import { otherTheme, setUp, theme } from "./dom.mjs";

document.addEventListener("click", ({ target }) => target.closest("[data-act=theme]") && theme(otherTheme()));
setUp();
