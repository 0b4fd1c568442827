"""`python -m minutch COMMAND …`"""

import sys

from minutch.commands.cli import main

sys.exit(main())
