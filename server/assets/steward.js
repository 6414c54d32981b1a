// Keyboard shortcuts, news, charts, and search while typing. Every page works without this file.
(() => {
  "use strict";
  // What is folded is passed over.
  const cards = () => [...document.querySelectorAll(".card, .change")].filter((card) => card.offsetParent);
  const current = () => document.activeElement && document.activeElement.closest(".card, .change");
  const step = (by) => {
    const all = cards();
    const at = all.indexOf(current());
    const next = all[Math.min(Math.max(at + by, 0), all.length - 1)];
    if (next) next.focus();
  };
  // Cards that are selected with `x` are answered together.
  const select = (card) => {
    const bar = document.querySelector("#selection");
    if (!bar || !card || !card.dataset.select) return;
    card.classList.toggle("selected");
    const selected = [...document.querySelectorAll(".card.selected")];
    bar.hidden = selected.length === 0;
    bar.querySelector("span").textContent = `${selected.length} selected`;
    for (const input of bar.querySelectorAll("[data-id]")) input.remove();
    for (const one of selected) {
      const input = document.createElement("input");
      [input.type, input.name, input.value, input.dataset.id] = ["hidden", one.dataset.select, one.id.slice(1), ""];
      bar.append(input);
    }
  };
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest("input, select, textarea");
    if (event.key === "Escape" && typing) typing.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "j") return step(1);
    if (event.key === "k") return step(-1);
    if (event.key === "?") return document.querySelector("#keys").showModal();
    if (event.key === "x") return select(current());
    const scope = event.key === "/" ? document : current();
    const one = scope && scope.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
    if (!one) return;
    event.preventDefault();
    if (one.matches("input")) one.focus();
    else one.click();
  });
  // Installed as an app, the dashboard says so when it cannot be reached.
  const worker = document.documentElement.dataset.worker;
  if (worker && "serviceWorker" in navigator) navigator.serviceWorker.register(worker, { scope: "/" }).catch(() => {});
  // A form is sent only once, however often its button is clicked.
  document.addEventListener("submit", (event) => {
    if (event.defaultPrevented || event.target.method !== "post") return;
    if (event.target.dataset.sent) return event.preventDefault();
    event.target.dataset.sent = "yes";
    // The next page begins where this one went on.
    const all = cards();
    const answered = event.target.closest(".card, .change");
    const following = answered && all[all.indexOf(answered) + 1];
    if (following) sessionStorage.setItem("next", following.id);
  });
  const next = document.getElementById(sessionStorage.getItem("next"));
  sessionStorage.removeItem("next");
  if (next) {
    const folded = next.closest("details");
    if (folded) folded.open = true;
    next.focus({ preventScroll: true });
    next.scrollIntoView({ block: "center", behavior: "instant" });
  }
  // The way back is offered for a while; on the record it stays.
  for (const offer of document.querySelectorAll("[data-for]")) {
    setTimeout(() => offer.remove(), offer.dataset.for * 1000);
  }
  // Moments are shown in the reader's own zone; UTC stays in the title.
  const shown = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
  const localize = (root) => {
    for (const moment of root.querySelectorAll("time.moment")) {
      const at = new Date(moment.dateTime);
      if (!Number.isNaN(at.getTime())) moment.textContent = shown.format(at);
    }
  };
  localize(document);
  // The server escapes what it sends; the policy of the page runs no script in it.
  const fetchPart = async (url, selector, signal) => {
    const response = await fetch(url, { signal, headers: { accept: "text/html" } });
    if (!response.ok) return null;
    const part = new DOMParser().parseFromString(await response.text(), "text/html").querySelector(selector);
    if (part) localize(part);
    return part;
  };
  // Says that there is news; nothing that is being read or typed moves.
  for (const news of document.querySelectorAll("[data-live]")) {
    let source;
    const listen = () => {
      source = new EventSource(news.dataset.live);
      source.addEventListener("message", (event) => { news.innerHTML = event.data; });
    };
    listen();
    // A page that is left must not keep one of the browser's few connections.
    window.addEventListener("pagehide", () => source.close());
    window.addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  }
  // The charts come after the page.
  for (const section of document.querySelectorAll("[data-load]")) {
    fetchPart(section.dataset.load, "#drawn").then((part) => {
      if (part) section.querySelector(".drawn").replaceChildren(...part.childNodes);
    }, () => {});
  }
  // The results follow the words; the address follows the results.
  for (const form of document.querySelectorAll("form[data-search]")) {
    let timer = 0;
    let request = new AbortController();
    const search = () => {
      clearTimeout(timer);
      request.abort();
      request = new AbortController();
      const url = `${form.action}?${new URLSearchParams(new FormData(form))}`;
      fetchPart(url, form.dataset.search, request.signal).then((part) => {
        if (!part) return;
        document.querySelector(form.dataset.search).replaceWith(part);
        if (url !== location.href) history.pushState(null, "", url);
      }, () => {});
    };
    form.addEventListener("input", (event) => {
      if (event.target.name !== "q") return;
      clearTimeout(timer);
      timer = setTimeout(search, 300);
    });
    form.addEventListener("change", search);
    window.addEventListener("popstate", () => location.reload());
  }
  window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
  });
})();
