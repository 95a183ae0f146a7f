"use strict";
// Show the filter form, and only findings with all of its words, its severity and its result.
const form = document.querySelector(".filter");
const rows = [...document.querySelectorAll("#findings tbody tr")];
const shown = document.querySelector("#shown");
function choose() {
  const words = form.words.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const row of rows) {
    const text = row.textContent.toLowerCase();
    row.hidden = !(words.every((word) => text.includes(word)) &&
      ["severity", "result"].every((key) => !form[key].value || row.dataset[key] === form[key].value));
    count += row.hidden ? 0 : 1;
  }
  shown.textContent = `${count} of ${rows.length} shown`;
}
if (form) {
  form.hidden = false;
  form.addEventListener("input", choose);
  form.addEventListener("submit", (event) => event.preventDefault());
  choose();
}
