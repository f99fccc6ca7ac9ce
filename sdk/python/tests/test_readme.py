"""Runs the case of the Rust SDK's README on the same plugin in this README."""

import re
import unittest
from pathlib import Path

from opilio_plugin.testing import check_cases

SDK = Path(__file__).parent.parent


class Readme(unittest.TestCase):
    def test_its_plugin_passes_the_case(self):
        [code] = re.findall(r"```python\n(.*?)```", (SDK / "README.md").read_text(), re.DOTALL)
        module: dict = {}
        exec(code, module)
        self.assertEqual(check_cases(module["plugins"], SDK.parent / "rust/tests/cases"), 1)


if __name__ == "__main__":
    unittest.main()
