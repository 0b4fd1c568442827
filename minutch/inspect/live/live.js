(() => {
  const turn = async () => {
    if (!document.hidden) {
      const gone = document.getElementById("gone");
      try {
        const answer = await fetch("/", { cache: "no-store" });
        if (!answer.ok) throw new Error(answer.status);
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
        document.title = fresh.title;
        for (const part of fresh.querySelectorAll("[data-live]")) {
          const old = document.getElementById(part.id);
          if (old && old.innerHTML !== part.innerHTML) old.replaceChildren(...part.childNodes);
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
