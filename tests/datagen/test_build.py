from pathlib import Path

from datagen import build, filter, generate
from datagen.build import tree_hash
from datagen.config import DatagenConfig
from datagen.store import Store


def test_every_task_gets_a_content_hash_and_keeps_its_dockerfile(config: DatagenConfig) -> None:
    generate.run(config)
    filter.run(config)
    assert build.run(config).passed == 6
    verdicts = Store(config.out).verdicts("build")
    assert len({v.content_hash for v in verdicts}) == 6
    dockerfile = (config.out / verdicts[0].path / "environment" / "Dockerfile").read_text()
    assert dockerfile == "ARG BASE_IMAGE=debian:12.11-slim\nFROM ${BASE_IMAGE}\nWORKDIR /workspace\nCOPY files/ ./\n"


def test_a_missing_dockerfile_is_written(config: DatagenConfig) -> None:
    generate.run(config)
    path = config.out / "candidates" / "write_file-train-0000" / "environment" / "Dockerfile"
    before = path.read_text()
    path.unlink()
    filter.run(config)
    assert build.run(config).passed == 6
    assert path.read_text() == before


def test_a_symbolic_link_in_the_environment_is_dropped(config: DatagenConfig) -> None:
    generate.run(config)
    files = config.out / "candidates" / "write_file-train-0000" / "environment" / "files"
    (files / "link").symlink_to("/etc/passwd")
    filter.run(config)
    assert build.run(config).dropped == {"environment": 1}
    (verdict,) = [v for v in Store(config.out).verdicts("build") if not v.ok]
    assert verdict.detail == "environment/files/link is a symbolic link; put the file itself there"


def test_the_hash_sees_names_bytes_and_the_executable_bit_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a").write_text("1")
    first = tree_hash(tmp_path)
    (tmp_path / "d" / "a").touch()
    assert tree_hash(tmp_path) == first
    (tmp_path / "d" / "a").chmod(0o755)
    executable = tree_hash(tmp_path)
    (tmp_path / "d" / "a").rename(tmp_path / "d" / "b")
    assert len({first, executable, tree_hash(tmp_path)}) == 3
