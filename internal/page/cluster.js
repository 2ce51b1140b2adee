// Copies the command beside a waiting reference.
"use strict";
(() => {
  // select marks the command, for where pages may not write to the clipboard.
  function select(command) {
    const range = document.createRange(), chosen = getSelection();
    range.selectNodeContents(command);
    chosen.removeAllRanges();
    chosen.addRange(range);
  }

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (!button) return;
    const command = button.parentElement.querySelector("code");
    try {
      await navigator.clipboard.writeText(command.textContent);
      button.textContent = "Copied";
    } catch {
      select(command);
      button.textContent = "Selected";
    }
  });
})();
