"""Reads what the verifier wrote: Harbor's `reward.json`, else `reward.txt`. No number is an error, never 0."""

from __future__ import annotations

import json
import math
import os
import re
import stat

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)
LARGEST_BYTES = 65536


def read_reward(directory: str) -> tuple[float | None, dict[str, float], str | None]:
    """Read the reward of one graded attempt.

    Returns:
        The reward in [0, 1], the further numbers of a reward.json, and None; or None, {} and why there is no reward.
    """
    try:
        text = _text(os.path.join(directory, "reward.json"))
        if text is not None:
            reward, others = _from_json(text)
            return reward, others, None
        text = _text(os.path.join(directory, "reward.txt"))
        if text is None:
            return None, {}, "the verifier wrote neither reward.json nor reward.txt"
        if not NUMBER.fullmatch(text.strip()):
            raise ValueError(f"reward.txt holds {_shown(text)}, no number between 0 and 1")
        return _in_range("reward.txt", float(text)), {}, None
    except ValueError as e:
        return None, {}, str(e)
    except (OverflowError, RecursionError):
        return None, {}, "reward.json holds a number or a nesting too large to read"


def _from_json(text: str) -> tuple[float, dict[str, float]]:
    try:
        table = json.loads(text)
    except ValueError as e:
        raise ValueError(f"reward.json holds {_shown(text)}, not JSON: {e}") from e
    if not isinstance(table, dict) or not table:
        raise ValueError(f"reward.json holds {_shown(text)}, no object with numbers")
    for key, value in table.items():
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise ValueError(f"reward.json: {key!r} is {_shown(json.dumps(value))}, no finite number")
    key = "reward" if "reward" in table else next(iter(table))
    if key != "reward" and len(table) > 1:
        raise ValueError(f"reward.json has several keys ({', '.join(sorted(table))[:200]}) and none is 'reward'")
    reward = _in_range("reward.json", float(table.pop(key)))
    return reward, {name: float(value) for name, value in table.items()}


def _in_range(where: str, value: float) -> float:
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"{where} holds {value!r}, outside 0 to 1")
    return value


def _text(path: str) -> str | None:
    """The file's text; None when it is absent. Follows no link: its writer may not choose what the runner reads."""
    name = os.path.basename(path)
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except FileNotFoundError:
        return None
    except OSError as e:
        raise ValueError(f"{name} cannot be read: {e.strerror}") from e
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise ValueError(f"{name} is not a regular file")
        raw = os.read(fd, LARGEST_BYTES + 1)
    finally:
        os.close(fd)
    if not raw.strip():
        raise ValueError(f"{name} is empty")
    if len(raw) > LARGEST_BYTES:
        raise ValueError(f"{name} is larger than {LARGEST_BYTES} bytes")
    return raw.decode("utf-8", errors="replace")


def _shown(text: str) -> str:
    short = text.strip()
    return repr(short if len(short) <= 60 else short[:60] + "…")
