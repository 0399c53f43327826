// Browsers without modules run this, and nothing else of ours.
document.getElementById("old").hidden = false;
