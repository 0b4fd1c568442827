"""bin/demo shows what people come for, and its last line can be run as it is printed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.golden import PROJECT


@pytest.mark.slow  # a whole crawl, and five commands
def test_the_demo(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tests.support.demo", str(tmp_path)],
        cwd=PROJECT,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(PROJECT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    parts = [part.partition("\n")[2] for part in done.stdout.split("── ")[1:]]
    commands = [part.split()[2] for part in parts]
    assert commands == ["crawl", "search", "audit", "explain", "sql"]
    assert "Reading the *Tides*" in parts[1]
    assert parts[2].count(" finding") == 3
    assert "robots.txt denies it: line 2, Disallow: /private/" in parts[3]
    last = done.stdout.splitlines()[-1].replace("bin/minutch", f"{sys.executable} -m minutch", 1)
    subprocess.run(last, shell=True, cwd=PROJECT, check=True, capture_output=True)
    assert (tmp_path / "report.html").is_file()
