"""``python -m shortlist.cli``, the same as ``shortlist``."""

from shortlist.cli import main

if __name__ == "__main__":
    main()
