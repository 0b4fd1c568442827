"""Fixtures that tests of several plugins share."""

from __future__ import annotations

from pathlib import Path

import pytest
import trustme


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[trustme.CA, Path]:
    """A certificate authority made for the test, and the file that it is trusted by."""
    ca = trustme.CA()
    path = tmp_path_factory.mktemp("ca") / "ca.pem"
    ca.cert_pem.write_to_path(str(path))
    return ca, path
