// The copy button of a console block copies its commands, without prompts and output.
// A document after <<'EOF' and a line after a backslash belong to the command before them.
window.addEventListener(
  "click",
  (event) => {
    const button = event.target.closest?.("button[data-clipboard-target]");
    const code = button && document.querySelector(button.dataset.clipboardTarget);
    if (!code?.closest(".language-console")) return;
    const kept = [];
    let inDocument = false;
    let continued = false;
    for (const line of code.innerText.split("\n")) {
      const starts = !inDocument && line.startsWith("$ ");
      if (!starts && !inDocument && !continued) continue;
      kept.push(starts ? line.slice(2) : line);
      inDocument = inDocument ? line !== "EOF" : line.endsWith("<<'EOF'");
      continued = line.endsWith("\\");
    }
    button.dataset.clipboardText = kept.join("\n");
  },
  { capture: true },
);
