"""What the base model may know before the quickstart: the format, and nothing of the tasks."""

import importlib
import re
from random import Random

import pytest

from datagen.families import TINY_FAMILIES
from trainer.tiny.corpus import ENGLISH, PROGRAMS, SYSTEM, TOOLS, Template, draw_session, draw_templates
from trainer.tiny.words import split_of

SEED = 0  # of the shipped checkpoint
ARGUMENT = re.compile(r"\{\w+\}")
FIXED_ANSWERS = {"echo {} > {}", "mv {} {}", "sort {} > {}", "wc -l < {} > {}"}


@pytest.fixture(scope="module")
def templates() -> tuple[Template, ...]:
    return draw_templates(Random(SEED))


def _wordings() -> list[str]:
    modules = [importlib.import_module(f"datagen.families.{family}") for family in TINY_FAMILIES]
    return [ARGUMENT.sub("{}", wording) for module in modules for wording in module.WORDINGS]


def test_there_are_twelve_wordings_to_keep_out() -> None:
    assert len(set(_wordings())) == 12


def test_no_sentence_of_the_corpus_is_a_wording_of_a_task(templates: tuple[Template, ...]) -> None:
    sentences = {ARGUMENT.sub("{}", template.sentence) for template in templates}
    assert not sentences & set(_wordings())


def test_no_sentence_shares_four_words_in_a_row_with_a_wording(templates: tuple[Template, ...]) -> None:
    def runs(text: str) -> set[tuple[str, ...]]:
        words = ARGUMENT.sub("{}", text).lower().split()
        return {tuple(words[i : i + 4]) for i in range(len(words) - 3)}

    ours = set().union(*(runs(template.sentence) for template in templates))
    assert not ours & set().union(*(runs(wording) for wording in _wordings()))


def test_no_command_of_the_corpus_is_the_answer_to_a_task(templates: tuple[Template, ...]) -> None:
    commands = {ARGUMENT.sub("{}", template.command) for template in templates}
    assert not commands & FIXED_ANSWERS


def test_sessions_only_use_words_of_the_training_split(templates: tuple[Template, ...]) -> None:
    rng = Random(7)
    arguments = {a for _ in range(2000) for a in draw_session(rng, templates).arguments}
    assert {split_of(argument.partition(".")[0]) for argument in arguments} == {"train"}


def test_a_session_repeats_its_arguments_in_the_command() -> None:
    template = Template("Fold {0} under {1} now", "tac {1} >> {0}", (False, True), "Up.")
    session = draw_session(Random(1), [template])
    word, file = session.arguments
    assert session.instruction == f"Fold {word} under {file} now"
    assert session.command == f"tac {file} >> {word}"
    assert "." not in word
    assert "." in file


def test_the_same_seed_draws_the_same_templates_and_another_seed_others() -> None:
    assert draw_templates(Random(1)) == draw_templates(Random(1))
    assert draw_templates(Random(1)) != draw_templates(Random(2))


def test_no_filler_is_drawn_more_often_than_another() -> None:
    assert len(set(ENGLISH)) == len(ENGLISH)
    assert len(set(PROGRAMS)) == len(PROGRAMS)


def test_the_fixed_texts_are_those_of_the_react_harness() -> None:
    assert SYSTEM == (
        "You are an agent with a shell. Call the bash tool to act, read its output, "
        "and answer without a tool call when the task is done."
    )
    assert [tool["function"]["name"] for tool in TOOLS] == ["bash"]
    assert list(TOOLS[0]["function"]) == ["name", "description", "parameters"]
