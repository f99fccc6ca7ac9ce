"""`python3 -m opilio_plugin build [DIR] [--out FILE]` makes a component, `… test [DIR]` runs the cases natively. Exit codes:
0, 1 for an error in the project, 2 for a missing tool. Messages go to standard error."""

import argparse
import sys
from pathlib import Path

from .build import MissingTool, Project, ProjectFault, build
from .testing import check_cases


def main() -> int:
    """Runs the command line."""
    parser = argparse.ArgumentParser(prog="opilio_plugin", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, about in (("build", "make a component"), ("test", "run the cases in DIR/cases, without a host")):
        command = commands.add_parser(name, help=about)
        command.add_argument("folder", nargs="?", default=".", metavar="DIR")
        if name == "build":
            command.add_argument("--out", type=Path, metavar="FILE")
    given = parser.parse_args()
    folder = Path(given.folder).resolve()
    try:
        if given.command == "build":
            print("\n".join(build(folder, given.out and given.out.resolve())))
        else:
            print(f"{check_cases(Project.read(folder).plugins(), folder / 'cases')} cases passed")
    except MissingTool as missing:
        print(missing, file=sys.stderr)
        return 2
    except (ProjectFault, AssertionError, ValueError) as fault:
        print(fault, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
