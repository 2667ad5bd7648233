// Draws everything, again when the room changes, and in the colours asked for.

function drawFigures() {
  drawTree();
  drawItems();
  drawRanks();
  drawTraining();
  drawSteps();
  drawOverTime();
  drawDistributions();
  drawScatter();
  drawMissing();
}

const themes = [["", "as the system"], ["light", "light"], ["dark", "dark"]];

/** `#theme=dark` in the address opens the page dark. */
let theme = Math.max(0, themes.findIndex(([key]) => key && location.hash === `#theme=${key}`));

function showTheme() {
  const [key, text] = themes[theme];
  if (key) document.documentElement.dataset.theme = key;
  else delete document.documentElement.dataset.theme;
  at("theme").textContent = `theme: ${text}`;
}

showTheme();
drawSummary();
drawLatents();
drawChanges();
drawFacts();
prepareScatter();
drawFigures();

at("theme").addEventListener("click", () => {
  theme = (theme + 1) % themes.length;
  showTheme();
  drawScatter();
});
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawScatter);

let drawnAt = document.body.clientWidth;
new ResizeObserver(() => {
  if (document.body.clientWidth === drawnAt) return;
  drawnAt = document.body.clientWidth;
  drawFigures();
}).observe(document.body);
