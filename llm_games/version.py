"""The package's version: read here by all that name it, and by the build."""

from functools import cache

__version__ = "0.8.0"


@cache
def commit() -> str:
    """Return the commit of a checkout, with ``.changed`` if files of it were; "" elsewhere."""
    import subprocess
    from pathlib import Path

    root = Path(__file__).resolve().parent.parent
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "describe", "--always", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run([*command, "--dirty=.changed"], capture_output=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.decode(errors="replace").strip() if not done.returncode else ""


def made_by() -> str:
    """Return the version, and where it is known the commit: ``0.8.0+1a2b3c4d5e6f``."""
    return "+".join(filter(None, (__version__, commit())))
