"""Keys for tests alone. Whoever finds one of them in a real hub or box has found a mistake."""

from pathlib import Path

from nacl.signing import SigningKey


def key(name: str) -> SigningKey:
    """The signing key of `device`, `hub` or `stranger`, from the seed beside this file."""
    seed = Path(__file__).with_name(f"{name}.seed").read_text("ascii")
    return SigningKey(bytes.fromhex(seed))
