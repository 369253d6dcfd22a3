"""What one request may ask for."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """``body``: bytes of a request. ``rows``: examples in it. ``pixels``: of one image, decoded. ``seconds``: until it
    is answered. ``waiting``: rows of all requests that wait for the model."""

    body: int = 16_000_000
    rows: int = 1024
    pixels: int = 50_000_000
    seconds: float = 30.0
    waiting: int = 4096
