// Everything is open on paper.
{
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = draw.all("details:not([open])").filter((details) => !details.matches(".chooser, .static"));
    closed.forEach((details) => { details.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((details) => { details.open = false; }));
}
