"""What the UI's form is drawn from: the parameter schema of each flow."""

import importlib

import pytest
from prefect.utilities.callables import parameter_schema

FLOWS = {
    "datagen": "flows.generate.datagen",
    "sft": "flows.distill.sft",
    "rl-train": "flows.train.rl_train",
    "benchmark": "flows.evaluate.benchmark",
    "janitor": "flows.janitor.janitor",
}
OURS = ("flows.config", "tasks.config")


def schema(entrypoint: str) -> dict:
    module, _, name = entrypoint.rpartition(".")
    return parameter_schema(getattr(importlib.import_module(module), name)).model_dump()


@pytest.mark.parametrize("entrypoint", FLOWS.values(), ids=FLOWS)
def test_a_flow_takes_one_parameter_with_a_schema(entrypoint: str):
    found = schema(entrypoint)
    assert list(found["properties"]) == ["config"]
    assert found["properties"]["config"]["$ref"].startswith("#/definitions/")


@pytest.mark.parametrize("entrypoint", FLOWS.values(), ids=FLOWS)
def test_every_group_says_what_it_is_and_every_setting_has_words(entrypoint: str):
    for model, definition in schema(entrypoint)["definitions"].items():
        assert definition.get("description") or "enum" in definition, model
        for name, field in definition.get("properties", {}).items():
            # A reference without words of its own is drawn with title and description of what it refers to.
            assert {"$ref", "title", "description"} & set(field), f"{model}.{name}"


@pytest.mark.parametrize("name", ["datagen", "janitor"])
def test_flows_without_required_settings_start_from_an_empty_form(name: str):
    assert schema(FLOWS[name])["required"] == []
