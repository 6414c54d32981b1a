// Keyboard shortcuts. Everything works without this file.
(() => {
  "use strict";
  const cards = () => [...document.querySelectorAll(".card")];
  const current = () => document.activeElement && document.activeElement.closest(".card");
  const step = (by) => {
    const all = cards();
    const at = all.indexOf(current());
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    if (next) next.focus();
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape" && typing) typing.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") return step(1);
    if (event.key === "k") return step(-1);
    const scope = event.key === "/" ? document : current();
    const one = scope && scope.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!one) return;
    event.preventDefault();
    if (one.matches("input")) one.focus();
    else one.click();
  });
  // A form is sent only once, however often its button is clicked.
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.target.dataset.sent) event.preventDefault();
    else event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
})();
