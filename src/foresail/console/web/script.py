"""The console's only script: it renews a page when the server reports a change. Without it, pages are reloaded."""

SCRIPT = """"use strict";
(() => {
  const LATER = 10000;
  let source = null, timer = null, note = null;
  const main = () => document.querySelector("main[data-live]");
  const mark = (each) => each && (each.id || each.getAttribute("href") || each.getAttribute("aria-label"));

  function replaced(shown, fresh) {
    const before = [...shown.children], after = [...fresh.children];
    if (fresh.dataset.live) shown.dataset.live = fresh.dataset.live;
    else delete shown.dataset.live;
    if (before.length !== after.length) {
      shown.replaceChildren(...after);
      return;
    }
    before.forEach((each, place) => {
      if (each.outerHTML !== after[place].outerHTML) each.replaceWith(after[place]);
    });
  }

  // Returns whether the page shows what was reported, or shows all there is.
  async function renew() {
    if (document.activeElement.matches("input")) return false;
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main"), shown = main();
    const active = document.activeElement;
    if (!shown) return true;
    if (!answer.ok || !fresh || active.matches("input")) return false;
    const focus = shown.contains(active) ? mark(active) : null;
    replaced(shown, fresh);
    if (!main()) source?.close();  // it has ended
    if (focus && !document.contains(active)) {
      [...shown.querySelectorAll("a, button, [tabindex]")].find((each) => mark(each) === focus)?.focus();
    }
    return true;
  }

  async function update() {
    clearTimeout(timer);
    const done = await renew().catch(() => false);
    if (done || !source || source.readyState === EventSource.CLOSED) return;
    clearTimeout(timer);
    timer = setTimeout(update, LATER);
  }

  function ended() {
    if (source?.readyState !== EventSource.CLOSED || note || !main()) return;
    clearTimeout(timer);
    note = document.createElement("p");
    note.className = "note";
    note.setAttribute("role", "status");
    note.textContent = "This page is no longer live. Reload it.";
    main().before(note);
  }

  function follow() {
    source?.close();
    source = null;
    clearTimeout(timer);
    if (document.hidden || !main()) return;
    note?.remove();
    note = null;
    source = new EventSource(main().dataset.live);
    source.addEventListener("changed", update);
    source.addEventListener("error", ended);
  }

  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", () => source?.close());
  follow();
})();
"""
"""Rules of ours alone: no text of a cluster is in it."""
