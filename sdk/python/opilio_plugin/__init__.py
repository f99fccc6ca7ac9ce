"""The SDK for Opilio plugins in Python. A plugin is a class with a dataclass of settings, in the list `plugins`.

The kinds are base classes: `Extractor`, `Filter`, `DigestStripper`, `ChangeEvaluator`, `WaitEvaluator`, `Precedence`,
`Observer` and `PageBehavior`. For native tests, `opilio_plugin.testing` has documents, visits and pages, and runs cases.
"""

from .host import count, debug, error, info, table, warn
from .plugin import (
    ChangeEvaluator,
    DigestStripper,
    Extractor,
    Filter,
    Observer,
    PageBehavior,
    Plugin,
    Precedence,
    WaitEvaluator,
)
from .records import (
    Action,
    ActionResult,
    BytesAt,
    Candidate,
    Click,
    Comparison,
    DateSignal,
    Evaluate,
    Extraction,
    Finished,
    Fragment,
    Header,
    Keep,
    KeptValue,
    Line,
    Link,
    LinkDetails,
    NamedValue,
    Neighbourhood,
    Observation,
    PastVisit,
    Pause,
    Report,
    Retry,
    Row,
    Ruling,
    Screenshot,
    Scroll,
    ScrollBy,
    ScrollTo,
    ScrollToElement,
    Signal,
    Span,
    StepPlan,
    StripProblem,
    Submission,
    TextAt,
    Wait,
    WaitForNetwork,
    WaitForSelector,
)
from .settings import SettingsFault, SettingsFaults, setting
from .views import Candidates, Document, Page, Queue, Visit

__all__ = [name for name in dir() if not name.startswith("_")]
