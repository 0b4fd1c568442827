"""`python -m minutch COMMAND …`"""

import sys

from minutch.cli import main

sys.exit(main())
