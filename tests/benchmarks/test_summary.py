import json

from benchmarks.run_files import RlTotals
from benchmarks.score import score
from benchmarks.summary import levels_table, quickstart_report, write_report_json

TOTALS = RlTotals(
    rollouts=128,
    failed={},
    steps=2,
    violations=dict.fromkeys(("I1", "I2", "I3", "I4", "I5", "I6"), 0),
    rows_per_rollout=1.0,
    max_logprob_diff=4e-6,
)


def policy_score(make_result, policy, solved):
    return score(policy, [make_result(reward=float(i < solved), policy=policy) for i in range(10)], {})


def report(make_result):
    scores = {
        policy: policy_score(make_result, policy, solved) for policy, solved in (("base", 0), ("sft", 5), ("rl", 8))
    }
    return quickstart_report(
        seed=7, **scores, seconds={"datagen": 20.0, "rl-train": 300.5}, peak_gib=3.25, totals=TOTALS
    )


def test_the_file_has_exactly_the_promised_keys(make_result, tmp_path):
    path = tmp_path / "runs" / "quickstart" / "report.json"
    write_report_json(report(make_result), path)
    found = json.loads(path.read_text())
    assert set(found) == {
        "seed", "base", "sft", "rl", "seconds", "peak_gib", "invariants", "rows_per_rollout", "max_logprob_diff"
    }  # fmt: skip
    assert found["rl"] | {"low": 0, "high": 0} == {"success": 0.8, "low": 0, "high": 0, "n": 10}
    assert round(found["rl"]["low"], 4) == 0.4902  # Wilson of 8 in 10
    assert found["invariants"] == {"I1": 0, "I2": 0, "I3": 0, "I4": 0, "I5": 0, "I6": 0}
    assert found["seconds"] == {"datagen": 20.0, "rl-train": 300.5}
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]


def test_the_terminal_table_shows_each_level_with_its_interval(make_result):
    lines = levels_table(report(make_result)).splitlines()
    assert len(lines) == 4
    assert lines[1].split() == ["base", "0.0", "%", "0.0", "-", "27.8", "%", "10"]
    assert lines[3].split() == ["after", "RL", "80.0", "%", "49.0", "-", "94.3", "%", "10"]
