"use strict";
// Tables are sorted by a click on the head of a column; again: the other way round.
for (const table of document.querySelectorAll("table")) {
  const body = table.tBodies[0];
  if (body.rows.length < 2) continue;
  const original = new Map([...body.rows].map((row, at) => [row, at]));
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    if (!head.textContent) return;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const isNumber = head.classList.contains("number");
      const before = head.getAttribute("aria-sort");
      const way = before ? (before === "ascending" ? -1 : 1) : isNumber ? -1 : 1;
      const value = (row) => {
        const cell = row.cells[column];
        return isNumber ? ("value" in cell.dataset ? Number(cell.dataset.value) : NaN) : cell.textContent;
      };
      const compare = (a, b) => {
        const x = value(a), y = value(b);
        if (!isNumber) return way * x.localeCompare(y, "en", { numeric: true });
        if (Number.isNaN(x) || Number.isNaN(y)) return Number.isNaN(x) - Number.isNaN(y);
        return way * (x - y);
      };
      body.append(...[...body.rows].sort((a, b) => compare(a, b) || original.get(a) - original.get(b)));
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", way === 1 ? "ascending" : "descending");
    });
  });
}
