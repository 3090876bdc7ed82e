// The theme puts a <nav> around each button that copies code: dozens of landmarks without a name.
new MutationObserver(() => {
  document.querySelectorAll("nav.md-code__nav:not([role])").forEach((nav) => nav.setAttribute("role", "none"));
}).observe(document.body, { childList: true, subtree: true });
