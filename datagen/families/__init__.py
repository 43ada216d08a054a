"""The families of shell work, by name."""

from datagen.families.aggregate_csv import AggregateCsv
from datagen.families.archive import Archive
from datagen.families.count_lines import CountLines
from datagen.families.dedupe_lines import DedupeLines
from datagen.families.edit_ini import EditIni
from datagen.families.edit_json import EditJson
from datagen.families.filter_log import FilterLog
from datagen.families.move_files import MoveFiles
from datagen.families.rename_file import RenameFile
from datagen.families.search_replace import SearchReplace
from datagen.families.sort_lines import SortLines
from datagen.families.write_file import WriteFile
from datagen.instance import Family

FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        WriteFile(),
        RenameFile(),
        SortLines(),
        CountLines(),
        MoveFiles(),
        FilterLog(),
        AggregateCsv(),
        EditJson(),
        EditIni(),
        SearchReplace(),
        Archive(),
        DedupeLines(),
    )
}

TINY_FAMILIES = ("write_file", "rename_file", "sort_lines", "count_lines")
"""Families solved by one short command that only copies words of the instruction: what a policy of a million
parameters learns."""
