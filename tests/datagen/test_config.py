import pytest

from contracts.config import parse
from contracts.errors import ConfigError
from datagen.config import DatagenConfig
from datagen.families import FAMILIES


def test_the_default_names_every_family() -> None:
    assert DatagenConfig().families == tuple(FAMILIES)
    assert len(FAMILIES) >= 10


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"families": ("write_fil",)}, "no family named 'write_fil'; known: write_file, "),
        ({"families": ("write_file", "write_file")}, "a family is named twice"),
        ({"families": ()}, "families = "),
        ({"base_image": "debian"}, "the image is not pinned"),
        ({"base_image": "registry:5000/debian:latest"}, "the image is not pinned"),
        ({"harness": "nop"}, "'nop' does nothing"),
        ({"repeats": 0}, "repeats = 0"),
        ({"sead": 1}, "sead = 1"),
    ],
)
def test_a_bad_value_is_named_with_what_is_allowed(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as error:
        parse(DatagenConfig, values, "datagen")
    assert message in str(error.value)


def test_every_field_is_described_for_the_form() -> None:
    fields = DatagenConfig.model_json_schema()["properties"]
    assert [name for name, field in fields.items() if "description" not in field] == []
