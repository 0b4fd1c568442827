(() => {
  // Replaces what has changed; folded rounds stay as they are, and the focus stays where it is.
  const replace = (old, part) => {
    for (const one of part.querySelectorAll("details")) {
      one.open = document.getElementById(one.id)?.open ?? one.open;
    }
    if (old.innerHTML === part.innerHTML) return;
    const focused = old.contains(document.activeElement) && document.activeElement.id;
    old.replaceChildren(...part.childNodes);
    if (focused) document.getElementById(focused)?.focus();
  };
  const turn = async () => {
    if (!document.hidden) {
      const gone = document.getElementById("gone");
      try {
        const answer = await fetch(location.href, { cache: "no-store" });
        if (!answer.ok) throw new Error(answer.status);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        document.title = fresh.title;
        for (const part of fresh.querySelectorAll("[data-live]")) {
          const old = document.getElementById(part.id);
          if (old) replace(old, part);
        }
        gone.hidden = true;
      } catch {
        gone.hidden = false;
      }
    }
    setTimeout(turn, 2000);
  };
  setTimeout(turn, 2000);
})();
