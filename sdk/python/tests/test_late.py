"""Tests of sources in a snapshot, without a toolchain."""

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
        sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__name__ != "_Sources"]

    def test_sources_in_their_place_are_loaded_when_the_plugins_are_asked_for(self):
        packed = late.packed("1.2.3", {
            "plugin.py": PLUGIN,
            "later_package/__init__.py": "WORD = 'word'",
            "later_package/inner.py": "from . import WORD\nnumber = len(WORD)",
        })
        snapshot = b"before" + late.place(1000) + b"after"
        component = late.put(snapshot, packed)
        self.assertEqual((len(component), component[:6], component[-5:]), (len(snapshot), b"before", b"after"))
        project = late.Late(component[6:-5])
        self.assertNotIn("plugin", sys.modules)
        self.assertEqual(project.version, "1.2.3")
        self.assertEqual([plugin.name for plugin in project.plugins], ["word4"])

    def test_an_error_names_the_file_and_the_line(self):
        packed = late.packed("0", {"plugin.py": "\n\n1 / 0"})
        try:
            _ = late.Late(late.put(late.place(100), packed)).plugins
            self.fail("it was loaded")
        except ZeroDivisionError as problem:
            frame = traceback.extract_tb(problem.__traceback__)[-1]
        self.assertEqual((frame.filename, frame.lineno), ("plugin.py", 3))

    def test_a_place_that_is_too_small_is_refused(self):
        with self.assertRaisesRegex(late.NoPlace, "no place for 9 bytes"):
            late.put(late.place(8), b"123456789")

    def test_modules_of_the_standard_library_are_found_wherever_they_are_imported(self):
        source = "import json, opilio_plugin\nfrom . import x\ndef f():\n    from collections.abc import Iterator\n    import html.parser\n"
        self.assertEqual(
            snapshots.standard_modules([source]),
            ["collections.abc", "collections.abc.Iterator", "html.parser", "json"],
        )

    def test_a_project_with_files_that_are_no_sources_gets_a_snapshot_of_its_own(self):
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
