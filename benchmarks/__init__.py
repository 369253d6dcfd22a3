"""Speed and memory, measured: ``python -m benchmarks`` runs every suite (see README.md here)."""
