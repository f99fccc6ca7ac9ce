// The user's session. The token is sent once and exchanged for a cookie that scripts cannot read; the console does not store it.

import { get, send } from "./api.js";
import { h, id, put } from "./dom.js";
import { field } from "./notice.js";

/** User and role, as the daemon reported them last. */
export const session = {
  who: null,
  role: null,
  canSignOut: false,

  /** Reads the session from the daemon. Resolves to false if the user must sign in first. */
  async read() {
    let answer;
    try {
      answer = await get("session");
    } catch {
      // The daemon is unreachable; the page that is opened shows that.
      return true;
    }
    this.who = answer.user;
    this.role = answer.role;
    this.canSignOut = answer.required && answer.authenticated;
    // Actions that the role does not allow are hidden. The daemon refuses them in any case.
    if (answer.role) document.documentElement.dataset.role = answer.role;
    const isIn = answer.authenticated || !answer.required;
    window.dispatchEvent(new Event(isIn ? "signed-in" : "signed-out"));
    return isIn;
  },

  /** Ends the session. */
  async signOut() {
    await send("DELETE", "session").catch(() => undefined);
    this.who = null;
  },
};

let isAsking = false;

/** Asks for a token in a dialog over the open page, so that input on the page is kept. `then` runs after sign-in. */
export function askToSignIn(then) {
  if (isAsking) return;
  isAsking = true;
  const heading = id("sign-in");
  const token = h("input", { type: "password", name: "token", autocomplete: "current-password", required: true, autofocus: true });
  const error = h("p.form-error", { role: "alert" });
  const submit = h("button.button.primary", { type: "submit" }, "Sign in");
  const dialog = h("dialog", { "aria-labelledby": heading, oncancel: (event) => event.preventDefault() });
  const form = h(
    "form",
    {
      onsubmit: async (event) => {
        event.preventDefault();
        submit.disabled = true;
        put(error);
        try {
          await send("POST", "session", { token: token.value.trim() });
          isAsking = false;
          dialog.close();
          dialog.remove();
          await session.read();
          then();
        } catch (problem) {
          put(error, problem.message);
          token.select();
        } finally {
          submit.disabled = false;
        }
      },
    },
    h("h2", { id: heading }, "Sign in to Opilio"),
    field("Token", token, "An administrator creates tokens with `opilio token new`."),
    error,
    h("div.actions", {}, submit),
  );
  dialog.append(form);
  document.body.append(dialog);
  dialog.showModal();
}
