"""Texts in the notations that the API's description names, so that requests which fit it can be made up.

Nothing leaves this machine: hosts are names of loopback.
"""

import schemathesis
from hypothesis import strategies as st

PATH = r"[a-z0-9]{0,8}"
HOST = r"[a-z]{1,8}\.localhost"
URIS = st.from_regex(rf"http://{HOST}/{PATH}", fullmatch=True)
PROFILE = """name = "made"
extends = "default"
seeds = ["{seed}"]
workers = {workers}
"""

schemathesis.openapi.format("uri", URIS)
# One that is nobody's is refused as a placeholder.
schemathesis.openapi.format("contact-url", st.from_regex(rf"https://crawler\.harvest\.library/{PATH}", fullmatch=True))
schemathesis.openapi.format("component", st.sampled_from(["builtin:html", "builtin:css"]))
schemathesis.openapi.format("seed", st.one_of(URIS, st.from_regex(HOST, fullmatch=True), st.just("# a remark")))
schemathesis.openapi.format("regex", st.from_regex(r"\^?[a-z]{1,4}(\.\*|[0-9]\+)?\$?", fullmatch=True))
schemathesis.openapi.format(
    "setting",
    st.one_of(
        st.integers(1, 50).map(lambda workers: f"workers = {workers}"),
        st.integers(1, 20).map(lambda seconds: f'politeness.min-delay = "{seconds}s"'),
    ),
)
schemathesis.openapi.format("profile", st.builds(PROFILE.format, seed=URIS, workers=st.integers(1, 50)))
