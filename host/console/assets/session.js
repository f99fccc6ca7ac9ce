// Who is using the console. A token is given once and exchanged for a cookie that scripts cannot read; nothing of it is kept here.

import { get, send } from "./api.js";
import { h, id, put } from "./dom.js";
import { field } from "./notice.js";

/** Who one is to the daemon, as far as it has said. */
export const session = {
  who: null,
  role: null,
  canLeave: false,

  /** Asks the daemon; false where a token is needed first. */
  async read() {
    let answer;
    try {
      answer = await get("session");
    } catch {
      // It is away; the page that is opened says so.
      return true;
    }
    this.who = answer.user;
    this.role = answer.role;
    this.canLeave = answer.required && answer.authenticated;
    // What the role does not allow is not offered; the daemon refuses it in any case.
    if (answer.role) document.documentElement.dataset.role = answer.role;
    const isIn = answer.authenticated || !answer.required;
    window.dispatchEvent(new Event(isIn ? "signed-in" : "signed-out"));
    return isIn;
  },

  /** Ends it. */
  async leave() {
    await send("DELETE", "session").catch(() => undefined);
    this.who = null;
  },
};

let isAsking = false;

/** Asks for a token above whatever is open, so that nothing that was entered there is lost. */
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
