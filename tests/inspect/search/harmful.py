"""An object that does to its process what an index may; little has to be loaded for it."""

import os
import time


class Harmful:
    """Does what an index may do to who has it open."""

    def answers(self) -> int:
        return 7

    def raises(self) -> int:
        raise LookupError("odd")

    def aborts(self) -> int:
        os.abort()

    def takes(self) -> int:
        return len(bytearray(1 << 40))

    def sleeps(self) -> int:
        time.sleep(3600)
        return 0

    def lies(self) -> str:
        return "text"
