"""``python -m shortlist.cli``, the same as ``shortlist``."""

import os
import sys

if __name__ == "__main__":
    if not sys.flags.safe_path and sys.path[0] in ("", os.getcwd()):
        del sys.path[0]  # Python puts the current directory there; its files are data here, not code
    from shortlist.cli import main

    main()
