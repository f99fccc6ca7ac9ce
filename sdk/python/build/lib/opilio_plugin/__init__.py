"""Write Opilio plugins in Python: a settings dataclass, a class or two, one list of plugins.

`Plugin` says who a plugin is; `Extractor`, `Filter`, `DigestStripper`, `ChangeEvaluator`, `WaitEvaluator`, `Precedence`
and `Observer` are what it can do. The same module runs natively: `opilio_plugin.testing` has documents and visits to call
plugins with, and runs cases written in JSON.
"""

from .host import count, debug, error, info, table, warn
from .plugin import (
    ChangeEvaluator,
    DigestStripper,
    Extractor,
    Filter,
    Observer,
    Plugin,
    Precedence,
    WaitEvaluator,
)
from .records import (
    BytesAt,
    Candidate,
    Comparison,
    DateSignal,
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
    Report,
    Retry,
    Row,
    Ruling,
    Signal,
    Span,
    StripProblem,
    Submission,
    TextAt,
    Wait,
)
from .settings import SettingsFault, SettingsFaults, setting
from .views import Candidates, Document, Queue, Visit

__all__ = [name for name in dir() if not name.startswith("_")]
