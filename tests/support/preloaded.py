"""What a fork server of the tests loads before it forks: as in a job, and the model of languages,
which each parse worker that identifies them would unpack for itself in half a second.
"""

import gc
from functools import cache

from py3langid import langid

from minutch.cycle.fetch import preloaded

__all__ = ["preloaded"]

langid._load_model_file = cache(langid._load_model_file)
langid._load_model_file(langid.MODEL_DIR / langid.MODEL_FILE)
gc.freeze()
