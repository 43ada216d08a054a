"""Which tasks of a set say the same thing. Pure: names and texts in, names out.

A task's text is its instruction and its start files. Siblings of a procedural family share wording and differ in
words and content, so stretches of 13 words that two tasks have in common are rare unless they really are alike; 13 is
the stretch length of the decontamination in GPT-3 (arXiv:2005.14165, appendix C).
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

STRETCH = 13
TOKEN = re.compile(r"\w+")


@dataclass(frozen=True)
class Twin:
    """A task that repeats an earlier one."""

    original: str
    similarity: float
    """Jaccard index of their stretches; 1.0 for exact duplicates."""
    exact: bool


def normalised(text: str) -> str:
    """Lower case, one space between words, no outer white space."""
    return " ".join(text.lower().split())


def twins(texts: Iterable[tuple[str, str]], threshold: float) -> dict[str, Twin]:
    """Find the tasks that repeat an earlier one.

    Args:
        texts: (name, text) in the order of precedence: of two alike the first stays.
        threshold: Jaccard index from which two tasks count as near duplicates, in (0, 1].
    Returns:
        name → what it repeats; originals are absent.
    """
    found: dict[str, Twin] = {}
    exact: dict[str, str] = {}
    kept: dict[str, frozenset[tuple[str, ...]]] = {}
    holders: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, text in texts:
        key = normalised(text)
        if key in exact:
            found[name] = Twin(exact[key], 1.0, exact=True)
            continue
        exact[key] = name
        grams = stretches(key)
        rivals = dict.fromkeys(rival for gram in grams for rival in holders[gram])
        near = max(((jaccard(grams, kept[rival]), rival) for rival in rivals), default=(0.0, ""))
        if near[0] >= threshold:
            found[name] = Twin(near[1], near[0], exact=False)
            continue
        kept[name] = grams
        for gram in grams:
            holders[gram].append(name)
    return found


def stretches(text: str) -> frozenset[tuple[str, ...]]:
    """Every run of 13 words; a shorter text is one run."""
    tokens = TOKEN.findall(text.lower())
    return frozenset(tuple(tokens[i : i + STRETCH]) for i in range(max(1, len(tokens) - STRETCH + 1)))


def jaccard(a: frozenset[tuple[str, ...]], b: frozenset[tuple[str, ...]]) -> float:
    """Shared stretches over all stretches; 1.0 for two empty sets."""
    return len(a & b) / len(a | b) if a | b else 1.0
