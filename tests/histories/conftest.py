"""The tests of this folder import its modules by name, and the server starters of the other folders."""

import pathlib
import sys

FOLDER = pathlib.Path(__file__).parent
for folder in (FOLDER.parent / "acceptance", FOLDER.parent / "python", FOLDER):
    sys.path.insert(0, str(folder))
