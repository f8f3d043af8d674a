"""What pages load from the server: the style sheet and the script."""

OLD_MINUTES = 3
"""After so long a verdict that was not read again is no longer green, with the script or without."""

_OLD = str(60 * OLD_MINUTES)

SCRIPT = """"use strict";
(() => {
  const LATER = 10000, TICK = 5000, AGAIN = 60000, OLD = 1000 * @OLD@;
  let source = null, timer = null, note = null, renewing = 0, readAt = Date.now(), took = 0;
  const isOpen = () => source?.readyState === EventSource.OPEN;
  const age = () => Date.now() - readAt;
  const main = () => document.querySelector("main[data-live]");
  const mark = (each) => each && (each.id || each.getAttribute("href") || each.getAttribute("aria-label"));

  // What the viewer has opened, moved or typed in a part stays.
  function keep(before, after) {
    for (const [what, field] of [["details", "open"], [".scroll", "scrollLeft"], ["input[type=search]", "value"]]) {
      const old = before.querySelectorAll(what), fresh = after.querySelectorAll(what);
      if (old.length !== fresh.length) continue;
      old.forEach((each, place) => { fresh[place][field] = each[field]; });
    }
  }

  function replaced(shown, fresh) {
    const before = [...shown.children], after = [...fresh.children];
    if (fresh.dataset.live) shown.dataset.live = fresh.dataset.live;
    else delete shown.dataset.live;
    if (before.length !== after.length) {
      shown.replaceChildren(...after);
      return;
    }
    before.forEach((each, place) => {
      if (each.outerHTML === after[place].outerHTML) return;
      each.replaceWith(after[place]);
      keep(each, after[place]);
    });
  }

  // Returns whether the page shows what was reported, or shows all there is.
  async function renew() {
    if (document.activeElement.matches("input")) return false;
    const began = Date.now();
    const answer = await fetch(location.href);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.querySelector("main"), shown = main();
    const active = document.activeElement;
    if (!shown) return true;
    if (!answer.ok || !fresh || active.matches("input")) return false;
    const focus = shown.contains(active) ? mark(active) : null;
    replaced(shown, fresh);
    const then = page.querySelector(".facts"), before = document.querySelector(".facts");
    if (then && before) before.replaceWith(then);
    readAt = began;
    took = Date.now() - began;
    if (!main()) source?.close();  // it has ended
    tell();
    if (focus && !document.contains(active)) {
      [...shown.querySelectorAll("a, button, [tabindex]")].find((each) => mark(each) === focus)?.focus();
    }
    return true;
  }

  async function update() {
    clearTimeout(timer);
    timer = null;
    renewing += 1;
    const done = await renew().catch(() => false);
    renewing -= 1;
    if (done || !source || source.readyState === EventSource.CLOSED) return;
    clearTimeout(timer);
    timer = setTimeout(update, LATER);
  }

  // Says whether the page is live: followed, and read again not long ago.
  function tell() {
    const live = Boolean(main()) && isOpen() && age() < OLD;
    const word = document.getElementById("live");
    if (word) word.textContent = live ? "live" : "not live";
    document.querySelectorAll(".state").forEach((each) => { each.textContent = live ? "Live" : "Not live"; });
    document.querySelectorAll(".reload").forEach((each) => { each.hidden = live; });
    document.documentElement.classList.toggle("live", live);
    document.documentElement.classList.toggle("old", age() >= OLD);
  }

  // A stream reports what runs; a verdict also changes when nothing runs any more, so it is read again.
  function tick() {
    tell();
    if (isOpen() && main() && !timer && !renewing && age() > Math.max(AGAIN, 20 * took)) update();
  }

  function ended() {
    tell();
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
    tell();
    if (document.hidden || !main()) return;
    note?.remove();
    note = null;
    source = new EventSource(main().dataset.live);
    source.addEventListener("open", tick);
    source.addEventListener("changed", update);
    source.addEventListener("error", ended);
  }

  // The command before a button; the server writes the buttons, so that a renewed page is compared as it was.
  document.documentElement.classList.add("js");
  document.addEventListener("click", async (event) => {
    const button = event.target.closest?.("button.copy");
    if (!button) return;
    const text = button.previousElementSibling.textContent;
    const done = await navigator.clipboard.writeText(text).then(() => true, () => false);
    button.textContent = done ? "Copied" : "Select it";
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });

  // A form that changes something is sent once, however often its button is clicked.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    setTimeout(() => { delete form.dataset.sent; }, LATER);
  });

  document.addEventListener("visibilitychange", follow);
  window.addEventListener("pageshow", (event) => { if (event.persisted) follow(); });  // by the button Back
  window.addEventListener("pagehide", () => source?.close());
  setInterval(tick, TICK);
  follow();
})();
""".replace("@OLD@", _OLD)
"""Rules of ours alone: no text of a cluster is in it."""


SHEET = """
:root{--page:#f6f8fa;--card:#fff;--ink:#1c2a33;--pale:#4a5f6b;--line:#d5dde2;--link:#0b5cad;--code:#eef2f5;
--good:#17653a;--good-back:#dff3e6;--warn:#7a4a00;--warn-back:#fdf0d5;--bad:#a11a1a;--bad-back:#fde5e3;
--l1:#cfe6f7;--l2:#f6d394;--l3:#f2a58c;--cell:#1c2a33}
@media (prefers-color-scheme:dark){:root{--page:#12191e;--card:#1b252c;--ink:#e6edf1;--pale:#a9bbc6;--line:#34434d;
--link:#7cc0ff;--code:#25323a;--good:#8fdcab;--good-back:#173825;--warn:#f5c873;--warn-back:#3d2e12;--bad:#ffaca3;
--bad-back:#4a1f1c;--l1:#1d4a68;--l2:#6b4b0c;--l3:#8a3a20;--cell:#fff}}
*{box-sizing:border-box}
html{color-scheme:light dark}
body{margin:0;background:var(--page);color:var(--ink);font:15px/1.5 system-ui,sans-serif}
main,header,footer{max-width:1500px;margin:0 auto;padding:0 20px}
header{padding-top:24px}footer{padding:16px 20px 40px;color:var(--pale)}
h1,h2,h3{overflow-wrap:anywhere}
h1{font-size:1.6rem;margin:0}h2{font-size:1.2rem;margin:0 0 10px}h3{font-size:1rem;margin:16px 0 4px}
header p,.note{color:var(--pale);margin:4px 0}
header nav a{display:inline-block;margin:6px 12px 0 0}
a{color:var(--link)}
:focus-visible{outline:3px solid var(--link);outline-offset:2px}
section{background:var(--card);border:1px solid var(--line);border-radius:8px;padding:16px 18px;margin:18px 0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(180px,1fr));gap:12px;margin:18px 0}
.tile{background:var(--card);border:1px solid var(--line);border-left:5px solid var(--line);
border-radius:8px;padding:12px 14px}
.tile.good{border-left-color:var(--good)}.tile.warn{border-left-color:var(--warn)}.tile.bad{border-left-color:var(--bad)}
.tile dt{color:var(--pale)}.tile dd{margin:0}.figure{display:block;font-size:1.7rem;font-weight:600}
.tile.bad .figure{color:var(--bad)}.detail{display:block;color:var(--pale);overflow-wrap:anywhere}
.scroll{overflow-x:auto;position:relative}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{text-align:left;vertical-align:top;
padding:6px 10px 6px 0;border-bottom:1px solid var(--line);overflow-wrap:anywhere}
td{min-width:5.5em}thead th{color:var(--pale);font-weight:600;white-space:nowrap;overflow-wrap:normal}
tbody th{font-weight:600;min-width:9em}
.week{table-layout:fixed;min-width:900px}.week th,.week td{padding:4px 2px;text-align:center;min-width:0}
.week caption,.week th[scope=row]{text-align:left}.week th:first-child{width:8em;white-space:nowrap}
.week th:last-child{width:4em}
caption{text-align:left;color:var(--pale);padding-bottom:6px}
.l1{background:var(--l1);color:var(--cell)}.l2{background:var(--l2);color:var(--cell)}
.l3{background:var(--l3);color:var(--cell);font-weight:600}
.badge{display:inline-block;padding:0 7px;border-radius:9px;border:1px solid var(--line);white-space:nowrap}
.badge.good{background:var(--good-back);color:var(--good);border-color:var(--good)}
.badge.warn{background:var(--warn-back);color:var(--warn);border-color:var(--warn)}
.badge.bad{background:var(--bad-back);color:var(--bad);border-color:var(--bad)}
code{font:13px/1.5 ui-monospace,monospace;background:var(--code);
border-radius:4px;padding:1px 5px;overflow-wrap:anywhere}
.command{display:inline-block;user-select:all}
.empty{color:var(--pale)}.copy{display:none}
.unseen{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);white-space:nowrap}
@media (min-width:2400px){html{font-size:22px}body{font-size:21px}code,pre{font-size:18px}
main,header,footer{max-width:2400px}}
@media print{:root{--page:#fff;--card:#fff;--ink:#000;--pale:#333;--line:#bbb;--link:#000;--code:#f3f3f3;
--good:#17653a;--good-back:#fff;--warn:#7a4a00;--warn-back:#fff;--bad:#a11a1a;--bad-back:#fff;
--l1:#e4f1fb;--l2:#fbe7c1;--l3:#f8cdbf;--cell:#000}
@page{size:A4 landscape;margin:12mm}body{font-size:11px}main,header,footer{max-width:none;padding:0}
section{border:0;padding:0}.scroll{overflow:visible}tr{break-inside:avoid}thead{display:table-header-group}
.week{min-width:0}.l1,.l2,.l3{print-color-adjust:exact}nav,form{display:none}}
"""
"""Rules of ours alone: no text of a cluster is in them."""

CONSOLE = """
header nav{display:flex;flex-wrap:wrap;gap:2px 4px;margin-bottom:16px;border-bottom:1px solid var(--line)}
header nav a{margin:0 0 -1px;padding:6px 10px;text-decoration:none;border-bottom:3px solid transparent}
header nav a:hover{border-bottom-color:var(--line)}
header nav a[aria-current]{font-weight:700;color:var(--ink);border-bottom-color:var(--link)}
.bar{display:flex;flex-wrap:wrap;align-items:center;gap:6px 22px;margin-bottom:10px}
header[class]{border-top:8px solid var(--of);padding-top:16px}
.of-blue{--of:#2f7fd6}.of-brown{--of:#9a6a3f}.of-gray{--of:#7a8791}.of-orange{--of:#e08320}.of-pink{--of:#d9639b}
.of-purple{--of:#8a63d2}.of-teal{--of:#1f9c9c}.of-yellow{--of:#d1b000}
.product{font-size:1.15rem;font-weight:700;color:var(--ink);text-decoration:none}
.facts{display:flex;flex-wrap:wrap;gap:2px 22px;margin:0;min-width:0}
.fact{display:flex;gap:6px;min-width:0}.fact dt{color:var(--pale)}.fact dd{margin:0;overflow-wrap:anywhere;min-width:0}
.switch{display:flex;flex-wrap:wrap;align-items:center;gap:6px;margin-left:auto}.switch label{color:var(--pale)}
.switch select,.switch input{max-width:min(22em,60vw)}
button,input[type=search],input[type=text],select,textarea{font:inherit;color:var(--ink);background:var(--card);
border:1px solid var(--pale);border-radius:6px;padding:4px 12px}
button{cursor:pointer;color:var(--link);border-color:var(--link);font-weight:600}button:hover{background:var(--code)}
td form{margin:0 0 6px}td ul{margin:0;padding-left:18px}
label+textarea{display:block;width:100%;max-width:60em;margin:6px 0 12px;font:13px/1.5 ui-monospace,monospace}
.rail{display:flex;flex-wrap:wrap;gap:4px 10px;list-style:none;padding:0;margin:12px 0;counter-reset:step}
.rail li{counter-increment:step;padding:4px 14px;border:1px solid var(--line);border-radius:16px;color:var(--pale)}
.rail li:before{content:counter(step) "  "}.rail li[aria-current]{border-color:var(--link);color:var(--link);
font-weight:700}.rail .done{color:var(--ink)}
.danger button,.danger button.go{background:var(--bad);border-color:var(--bad);color:var(--card)}
.danger button[name=what]{background:var(--card);border-color:var(--link);color:var(--link)}
details{margin:8px 0}.fields th,.fields td{padding:2px 10px 2px 0;min-width:6em;font-weight:400}
.fields td+td{font-weight:600}summary{cursor:pointer;font-weight:600}
.problem{color:var(--bad);font-weight:600}.choices p{display:flex;flex-wrap:wrap;gap:2px 12px;margin:0 0 8px}
.choices label{flex:0 0 16em}.choices p{align-items:center}.choices .acts{margin-top:14px}
.runs{columns:14em 4;margin:0;padding-left:18px}button.go{background:var(--link);color:var(--card)}
.choices input,.choices select{flex:1 1 16em;max-width:34em;min-width:0}
.paging a{margin-left:8px}
fieldset{border:1px solid var(--line);border-radius:8px;margin:0 0 12px;padding:8px 12px;min-width:0}
fieldset>label{display:block;padding:4px 0}legend{color:var(--pale);padding:0 6px}
.timeline{list-style:none;margin:0;padding:0 0 0 8px;border-left:3px solid var(--line)}
.timeline li{padding:5px 0;overflow-wrap:anywhere}
pre{font:13px/1.5 ui-monospace,monospace;margin:0;max-height:70vh;overflow:auto}
.verdict{border-width:1px 1px 1px 10px;padding:18px 20px}.verdict h2{font-size:1.5rem;margin:0 0 6px}
.verdict .why{font-size:1.1rem;margin:0 0 6px;overflow-wrap:anywhere}.facts-line{color:var(--pale);margin:0 0 10px}
.verdict.good{border-color:var(--good);background:var(--good-back)}
.verdict.warn{border-color:var(--warn);background:var(--warn-back)}
.verdict.bad{border-color:var(--bad);background:var(--bad-back)}
.verdict.good h2{color:var(--good)}.verdict.warn h2{color:var(--warn)}.verdict.bad h2{color:var(--bad)}
.verdict.good .facts-line,.verdict.warn .facts-line,.verdict.bad .facts-line{color:var(--ink)}
.verdict.bare{border-left-width:1px;padding-left:46px;background:repeating-linear-gradient(135deg,var(--warn) 0 8px,
var(--warn-back) 8px 16px) 0 0/28px 100% no-repeat,var(--warn-back)}.badge.bare{border-style:dashed}
.state-of{margin:0 0 6px}.aged{max-height:0;visibility:hidden;overflow:hidden;font-weight:700;
animation:aged 0s @OLD@s forwards}.aged p{margin:0 0 6px}@keyframes aged{to{visibility:visible;max-height:6em}}
.verdict.good{animation:faded 0s @OLD@s forwards}.verdict.good h2{animation:worn 0s @OLD@s forwards}
.bar .badge.good,#worst~.scroll .badge.good{animation:faded 0s @OLD@s forwards,worn 0s @OLD@s forwards}
@keyframes faded{to{background:var(--card);border-color:var(--pale);border-style:dashed dashed dashed solid}}
@keyframes worn{to{color:var(--ink)}}
.live .aged,.live .verdict.good,.live .verdict.good h2,.live .bar .badge.good,.live #worst~.scroll .badge.good{
animation:none}
.old .aged,.old .verdict.good,.old .verdict.good h2,.old .bar .badge.good,.old #worst~.scroll .badge.good{
animation-delay:0s}
.acts{display:flex;flex-wrap:wrap;gap:8px 12px;align-items:center}.acts form{margin:0}
.act{display:inline-block;padding:4px 12px;border:1px solid var(--link);border-radius:6px;font-weight:600;
text-decoration:none;background:var(--card);white-space:nowrap}.act:hover{background:var(--code)}
.sign{font-size:16px}.sign.good{color:var(--good)}.sign.warn{color:var(--warn)}.sign.bad{color:var(--bad)}
.sign.plain{color:var(--pale)}.strip{white-space:nowrap}
.wide{direction:rtl}.wide>*{direction:ltr}
.line{width:100%;min-width:860px;display:block;font:12px system-ui,sans-serif}.line text{fill:var(--pale)}
.line .tick,.line .rule{stroke:var(--line)}.line line.now{stroke:var(--link);stroke-width:2}
.line .when{text-anchor:middle}.line text.when.now{fill:var(--link);font-weight:700}
.line .sign{text-anchor:middle;font-size:18px;fill:var(--ink)}.line .sign.good{fill:var(--good)}
.line .sign.warn{fill:var(--warn)}.line .sign.bad{fill:var(--bad)}.line .sign.plain{fill:var(--pale)}
.line .count{font-size:10px;font-weight:700;fill:var(--ink)}.line .area{fill:transparent}
.line a:hover .area,.line a:focus-visible .area{fill:var(--code);stroke:var(--link)}.line .lane{font-size:12px}
.legend{list-style:none;display:flex;flex-wrap:wrap;gap:2px 16px;margin:6px 0;padding:0}.zoom a{margin:0 3px}
.zoom a[aria-current]{font-weight:700;color:var(--ink)}
@media (max-width:640px){header nav{flex-wrap:nowrap;overflow-x:auto}header nav a{white-space:nowrap}
td progress{width:8em}#worst~.scroll :is(th,td):nth-child(n+3):not(:last-child){display:none}
#worst~.scroll :is(th,td){min-width:5em}
#worst~.scroll :is(.act,.badge){white-space:normal;overflow-wrap:normal}
.facts{gap:0 14px}.verdict h2{font-size:1.25rem}.verdict .why{font-size:1rem}section{padding:12px}}
.js .nojs{display:none}.js .copy{display:inline-block;padding:0 8px;margin-left:6px;font-size:13px}
progress{width:12em;max-width:100%;vertical-align:middle;accent-color:var(--link)}
""".replace("@OLD@", _OLD)
"""What only the console needs: navigation and forms."""
