"""Tests of sources that a build writes into a snapshot. They need no toolchain."""

import sys
import tempfile
import traceback
import unittest
from pathlib import Path

from opilio_plugin import build, late, snapshots

PLUGIN = """
from later_package import WORD
from later_package.inner import number

class Later:
    name = WORD + str(number)

plugins = [Later]
"""


class Sources(unittest.TestCase):
    def tearDown(self):
        for name in [name for name in sys.modules if name == "plugin" or name.startswith("later_package")]:
            del sys.modules[name]
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_SourceFinder"]

    def test_packed_sources_are_loaded_on_first_use(self):
        packed = late.pack("1.2.3", {
            "plugin.py": PLUGIN,
            "later_package/__init__.py": "WORD = 'word'",
            "later_package/inner.py": "from . import WORD\nnumber = len(WORD)",
        })
        snapshot = b"before" + late.placeholder(1000) + b"after"
        component = late.fill(snapshot, packed)
        self.assertEqual((len(component), component[:6], component[-5:]), (len(snapshot), b"before", b"after"))
        project = late.LateProject(component[6:-5])
        self.assertNotIn("plugin", sys.modules)
        self.assertEqual(project.version, "1.2.3")
        self.assertEqual([plugin.name for plugin in project.plugins], ["word4"])

    def test_an_error_names_the_file_and_the_line(self):
        packed = late.pack("0", {"plugin.py": "\n\n1 / 0"})
        try:
            _ = late.LateProject(late.fill(late.placeholder(100), packed)).plugins
            self.fail("plugin.py was loaded without an error")
        except ZeroDivisionError as problem:
            frame = traceback.extract_tb(problem.__traceback__)[-1]
        self.assertEqual((frame.filename, frame.lineno), ("plugin.py", 3))

    def test_a_placeholder_that_is_too_small_is_an_error(self):
        with self.assertRaisesRegex(late.NoPlaceholder, "no placeholder for 9 bytes"):
            late.fill(late.placeholder(8), b"123456789")

    def test_imports_of_standard_modules_are_found_in_all_forms(self):
        source = "import json, opilio_plugin\nfrom . import x\ndef f():\n    from collections.abc import Iterator\n    import html.parser\n"
        self.assertEqual(
            snapshots.standard_modules([source]),
            ["collections.abc", "collections.abc.Iterator", "html.parser", "json"],
        )

    def test_sources_are_read_unless_a_package_has_other_files(self):
        with tempfile.TemporaryDirectory() as folder:
            project = Path(folder)
            for file in ("plugin.py", "words/__init__.py", "vendor/other/__init__.py", "cases/page.html"):
                (project / file).parent.mkdir(parents=True, exist_ok=True)
                (project / file).write_text(file)
            self.assertEqual(
                build._sources(project),
                {name: name for name in ("plugin.py", "words/__init__.py")} | {"other/__init__.py": "vendor/other/__init__.py"},
            )
            (project / "words/list.txt").write_text("")
            self.assertIsNone(build._sources(project))
