// A tab that is older than its server: when the page's files are others now, it is loaded again, once.

const own = new URL(import.meta.url).pathname.split("/").pop() ?? "";
const place = "stint.renewed";

/** Somebody types: their words would be lost. */
const isBusy = () => [...document.querySelectorAll("textarea, dialog input")].some(field => /** @type {HTMLInputElement} */ (field).value !== "");

/** Ask after each time that the server was away. */
export async function renew() {
  try {
    const page = await (await fetch("./", { cache: "no-store", credentials: "same-origin", headers: { Accept: "text/html" } })).text();
    const name = /assets\/(app-[0-9a-f]+\.js)/.exec(page)?.[1];
    if (!name || name === own || sessionStorage.getItem(place) === name) return;
    if (isBusy()) { setTimeout(renew, 5000); return; }
    sessionStorage.setItem(place, name);
    location.reload();
  } catch { /* away again, or no storage: the old page goes on */ }
}
