// For browsers without modules: say so; the picture's numbers and the text are in the page already.
document.getElementById("old").hidden = false;
