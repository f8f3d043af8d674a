"""The console's only script: it renews a page when the server reports a change. Without it, pages are reloaded."""

SCRIPT = """"use strict";
(() => {
  let source = null;
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

  async function renew() {
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main"), shown = main();
    const active = document.activeElement;
    if (!answer.ok || !fresh || !shown || active.matches("input")) return;
    const focus = shown.contains(active) ? mark(active) : null;
    replaced(shown, fresh);
    if (!main()) source?.close();  // it has ended
    if (focus && !document.contains(active)) {
      [...shown.querySelectorAll("a, button, [tabindex]")].find((each) => mark(each) === focus)?.focus();
    }
  }

  function follow() {
    source?.close();
    source = null;
    if (document.hidden || !main()) return;
    source = new EventSource(main().dataset.live);
    source.addEventListener("changed", () => renew().catch(() => {}));
  }

  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pagehide", () => source?.close());
  follow();
})();
"""
"""Rules of ours alone: no text of a cluster is in it."""
