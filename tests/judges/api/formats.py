"""Generators for the string formats in the API's description, so that schemathesis can generate valid requests.

All host names resolve to loopback, so no request leaves this machine.
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
# The API rejects contact URLs on reserved example hosts as placeholders.
schemathesis.openapi.format("contact-url", st.from_regex(rf"https://crawler\.harvest\.library/{PATH}", fullmatch=True))
schemathesis.openapi.format("host", st.from_regex(HOST, fullmatch=True))
schemathesis.openapi.format("statuses", st.from_regex(r"(-?[0-9]{1,3}|[1-5]xx|5[0-4][0-9]-599)(,404)?", fullmatch=True))
schemathesis.openapi.format("media-type", st.from_regex(r"[a-z]{1,8}/([a-z]{1,8}|\*)|no-type", fullmatch=True))
schemathesis.openapi.format("component", st.sampled_from(["builtin:html", "builtin:css"]))
schemathesis.openapi.format("seed", st.one_of(URIS, st.from_regex(HOST, fullmatch=True), st.just("# a remark")))
schemathesis.openapi.format("regex", st.from_regex(r"\^?[a-z]{1,4}(\.\*|[0-9]\+)?\$?", fullmatch=True))
DELAYS = st.integers(1, 20).map(lambda seconds: f'politeness.min-delay = "{seconds}s"')
schemathesis.openapi.format(
    "overridable-setting", st.integers(1, 20).map(lambda weeks: f'revisit.max-wait = "{weeks}w"')
)
schemathesis.openapi.format(
    "setting", st.one_of(st.integers(1, 50).map(lambda workers: f"workers = {workers}"), DELAYS)
)
schemathesis.openapi.format("profile", st.builds(PROFILE.format, seed=URIS, workers=st.integers(1, 50)))


@schemathesis.hook
def map_body(context, body):
    """Writes integers without a fraction: 245.0 is valid for the schema type integer, but clients do not write it."""
    if isinstance(body, dict):
        # A generated digest would not match the component.
        body = {key: value for key, value in body.items() if (key, "component" in body) != ("sha256", True)}
        return {key: map_body(context, value) for key, value in body.items()}
    if isinstance(body, list):
        return [map_body(context, value) for value in body]
    return int(body) if isinstance(body, float) and body.is_integer() else body
