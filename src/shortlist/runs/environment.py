"""What a run notes about the process that made it."""

import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from shortlist import __version__, kernels


def environment() -> dict[str, Any]:
    """Versions, machine and command of this process."""
    return {
        "shortlist": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "kernels": kernels.info()["in use"],
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "command": [Path(sys.argv[0]).name, *sys.argv[1:]],
        "torchrun": os.environ.get("TORCHELASTIC_RUN_ID"),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }
