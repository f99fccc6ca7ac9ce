"""Tests of a component in the sandbox. The program `opilio` runs cases on it and shows its errors. OPILIO is the path of the
program. The default is the debug build of the checkout."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

from opilio_plugin.build import MissingTool, Project, build, componentize_py, environment_of_tool
from opilio_plugin.testing import check_cases

OPILIO = os.environ.get("OPILIO", str(Path(__file__).resolve().parents[3] / "target/debug/opilio"))
GUESTS = Path(__file__).parent / "guests"


class Components(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.component = Path(cls.folder.name) / "guests.wasm"
        cls.plugin_names = build(GUESTS, cls.component)

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def run_plugin(self, name, pages, *more):
        """Runs a plugin once for all pages, because each run compiles the component."""
        with tempfile.TemporaryDirectory() as folder:
            for page, text in pages.items():
                (Path(folder) / f"{page}.html").write_text(text)
            command = [OPILIO, "plugin", "run", f"{self.component}#{name}", folder, *more]
            return subprocess.run(command, capture_output=True, text=True)

    def test_build_returns_the_names_of_the_plugins(self):
        self.assertEqual(self.plugin_names, ["headline", "inert", "faulty"])

    def test_cases_of_the_rust_sdk_pass_natively_and_in_the_sandbox(self):
        headline = Project.read(GUESTS).plugins()[:1]
        self.assertEqual(check_cases(headline, GUESTS / "cases"), 10)
        command = [OPILIO, "plugin", "test", self.component, "--cases", GUESTS / "cases"]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertIn("10 cases passed", run.stdout, run.stderr)

    def test_clock_and_randomness_are_constant_and_system_access_is_refused(self):
        output = self.run_plugin("inert", {"a": "<p>", "b": "<p>"}, "--json").stdout

        def facts(line):
            [answer] = json.loads(line)["answers"]
            return {link["uri"].rpartition("/")[2]: link["context"] for link in answer["found"]["links"]}

        first, second = map(facts, output.splitlines())
        closed = {"file", "own-file", "socket", "name", "web", "program"}
        self.assertEqual({first[name] for name in closed}, {"refused"}, first)
        self.assertIn(first["folder"], ("refused", "got []"))
        self.assertTrue(first["date"].startswith("2000-01-01T00:00:00"), first)
        self.assertEqual((first["clock"], first["arguments"], first["input"]), ("0.0", "0", "''"), first)
        self.assertEqual(first["environment"], "[]")
        self.assertEqual(second, first)

    def test_plugin_errors_name_plugin_version_uri_file_and_line(self):
        faults = {
            "raise": "ValueError: cannot read http",
            "wrong type": "WrongType: links[0].uri must be a str, not int 3",
            "text": "WrongType: links[0] must be a Link, not str 'a'",
            "no list": "TypeError: 'int' object is not iterable",
            "hop": "WrongType: links[0].hop must be one of link, embed",
            "fragment": "WrongType: fragments[0].content.offset must be a non-negative int, not int -1",
            "date": "WrongType: links[0].details.dates.modified must be a datetime with a time zone",
            "<a href=b>": "",
        }
        output = self.run_plugin("faulty", {str(at): how for at, how in enumerate(faults)}).stdout
        for message in filter(None, faults.values()):
            self.assertIn(f"faulty 1.2.3, extract: {message}", output)
        self.assertRegex(output, r"/0\.html.*\n.*ValueError: .*/0\.html\s+at deep \(deep\.py:5\)\s+at extract \(faulty\.py:26\)")
        self.assertIn("faulty 1.2.3, rank_candidates: WrongType: the answer must be a precedence from 1 to 255", output)

    def test_an_exception_in_the_constructor_is_a_configuration_error(self):
        errors = self.run_plugin("faulty", {"a": "<p>"}, "--settings", '{"refuse": true}').stderr
        self.assertRegex(errors, r"faulty 1\.2\.3 cannot be configured: .*faulty 1\.2\.3, configure: AttributeError: .*\(faulty\.py:20\)")


class Projects(unittest.TestCase):
    def check(self, files, message):
        """Builds in a separate process, because all projects have a module `plugin`."""
        with tempfile.TemporaryDirectory() as folder:
            for name, content in files.items():
                (Path(folder) / name).write_text(content)
            command = [sys.executable, Path(__file__).parent.parent / "opilio-plugin.py", "build", folder]
            run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode, 1, run.stderr)
        self.assertRegex(run.stderr, message)
        self.assertNotIn("Traceback", run.stderr)

    def test_errors_in_a_project_are_reported_without_a_traceback(self):
        facts = {"pyproject.toml": '[project]\nname = "x"\n'}
        self.check({}, "is not a Python plugin: it has no pyproject.toml")
        self.check({"pyproject.toml": "["}, "pyproject.toml: ")
        self.check({"pyproject.toml": "[project]\n"}, r"\[project\] has no name")
        self.check(facts, "has no plugin.py")
        self.check({**facts, "plugin.py": "plugin = []"}, r"does not define `plugins`: it needs a line such as plugins = \[MyPlugin\]")
        self.check({**facts, "plugin.py": "\n1 / 0"}, r"cannot be loaded: ZeroDivisionError: .* \(plugin\.py:2\)")
        unfinished = "from opilio_plugin import Extractor\nclass X(Extractor):\n    name = summary = 'x'\nplugins = [X]\n"
        self.check({**facts, "plugin.py": unfinished}, "TypeError: X does not define extract")

    def test_a_missing_tool_is_reported_with_its_install_command(self):
        nowhere = mock.patch("pathlib.Path.is_file", return_value=False), mock.patch("shutil.which", return_value=None)
        with nowhere[0], nowhere[1], mock.patch.dict(os.environ):
            os.environ.pop("OPILIO_TOOLCHAINS", None)
            with self.assertRaisesRegex(MissingTool, "componentize-py==0.25.1 is not installed: python3 -m venv"):
                componentize_py(Path("."))
            with self.assertRaisesRegex(MissingTool, r"venv '/my plugins/\.venv' && '/my plugins/\.venv'/bin/pip install"):
                componentize_py(Path("/my plugins"))
            os.environ["OPILIO_TOOLCHAINS"] = "/shared tools"
            with self.assertRaisesRegex(MissingTool, "venv '/shared tools/python' && '/shared tools/python'/bin/pip install"):
                componentize_py(Path("."))

    def test_modules_in_the_pythonpath_do_not_reach_the_toolchain(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, PYTHONPATH=folder):
            (Path(folder) / "types.py").write_text("raise ImportError('a module of the author')\n")
            command = [componentize_py(GUESTS), "--version"]
            run = subprocess.run(command, env=environment_of_tool(), capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr)
            unprotected = subprocess.run(command, env=os.environ, capture_output=True, text=True)
            self.assertIn("a module of the author", unprotected.stderr)


if __name__ == "__main__":
    unittest.main()
