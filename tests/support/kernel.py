"""Runs cells in a real Jupyter kernel: `python -m tests.support.kernel`, by a Python that has
ipykernel.

Cells come as JSON, a line each, on stdin: `{"code": …, "interrupt": "text" or null}`. For each a
line of JSON goes to stdout: the messages of its output, `[type, content]`. A cell with `interrupt`
is interrupted, as by the notebook's button, once a message has that text.
"""

from __future__ import annotations

import json
import sys

from jupyter_client.manager import start_new_kernel  # type: ignore[import-not-found]


def main() -> None:
    """Runs the cells."""
    manager, client = start_new_kernel(kernel_name="python3")
    try:
        for line in sys.stdin:
            asked = json.loads(line)
            # Else a kernel that has just told of an error may drop this cell without a word.
            mine, messages = client.execute(asked["code"], stop_on_error=False), []
            while True:
                message = client.get_iopub_msg(timeout=120)
                if message["parent_header"].get("msg_id") != mine:
                    continue
                kind, content = message["msg_type"], message["content"]
                if kind == "status" and content["execution_state"] == "idle":
                    break
                if kind not in ("status", "execute_input"):
                    messages.append([kind, content])
                if asked["interrupt"] and asked["interrupt"] in json.dumps(content):
                    manager.interrupt_kernel()
                    asked["interrupt"] = None
            print(json.dumps(messages), flush=True)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


if __name__ == "__main__":
    main()
