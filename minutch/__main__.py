"""`python -P -m minutch COMMAND …`: without -P, Python looks into the working folder first."""

import sys
from pathlib import Path

if not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parents[1]:
    del sys.path[0]  # the working folder; but what stands there under the name of minutch has run

from minutch.commands.cli import main

sys.exit(main())
