"""Runs `opilio_plugin` from a checkout without an installation: `python3 opilio-plugin.py build DIR`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from opilio_plugin.__main__ import main  # noqa: E402

sys.exit(main())
