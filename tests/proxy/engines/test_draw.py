import pytest
import torch

from proxy.engines.draw import Knobs, draw, knob_tensors

PROBABILITIES = [0.15, 0.5, 0.05, 0.3]
LN = {0.5: -0.6931472, 0.3: -1.2039728, 0.625: -0.4700036, 0.375: -0.9808293}


def drawn(knobs: Knobs, uniforms: list[float], probabilities: list[float] = PROBABILITIES) -> list[tuple[int, float]]:
    logits_BV = torch.tensor(probabilities).log().repeat(len(uniforms), 1)
    tensors = knob_tensors([knobs] * len(uniforms), len(probabilities))
    ids_B, logprobs_B = draw(logits_BV, tensors, torch.tensor(uniforms, dtype=torch.float64))
    return list(zip(ids_B.tolist(), logprobs_B.tolist(), strict=True))


def test_a_uniform_number_picks_the_token_whose_stretch_of_the_cumulative_distribution_holds_it():
    # cumulative: 0.15, 0.65, 0.70, 1.00
    ids = [i for i, _ in drawn(Knobs(1.0, 1.0, -1), [0.0, 0.149, 0.151, 0.649, 0.651, 0.699, 0.701, 0.9999999])]
    assert ids == [0, 0, 1, 1, 2, 2, 3, 3]


def test_the_logprob_is_that_of_the_full_distribution():
    assert drawn(Knobs(1.0, 1.0, -1), [0.5])[0] == (1, pytest.approx(LN[0.5], abs=1e-6))


def test_temperature_divides_the_logits():
    # temperature 0.5 squares: 0.0225, 0.25, 0.0025, 0.09 of 0.365
    assert drawn(Knobs(0.5, 1.0, -1), [0.5])[0] == (1, pytest.approx(-0.3784364, abs=1e-6))


def test_temperature_zero_takes_the_likeliest_with_its_untempered_logprob_whatever_the_filters():
    assert drawn(Knobs(0.0, 0.1, 1), [0.99])[0] == (1, pytest.approx(LN[0.5], abs=1e-6))


def test_top_k_renormalises_over_the_likeliest_k():
    # ids 1 and 3 remain, in id order: cumulative 0.625, 1.0
    low, high = drawn(Knobs(1.0, 1.0, 2), [0.62, 0.63])
    assert low == (1, pytest.approx(LN[0.625], abs=1e-6))
    assert high == (3, pytest.approx(LN[0.375], abs=1e-6))


def test_top_p_keeps_the_fewest_likeliest_tokens_that_reach_p():
    low, high = drawn(Knobs(1.0, 0.6, -1), [0.62, 0.63])
    assert (low[0], high[0]) == (1, 3)
    assert [i for i, _ in drawn(Knobs(1.0, 0.4, -1), [0.0, 0.5, 0.99])] == [1, 1, 1]


def test_top_k_among_equals_keeps_the_smallest_ids():
    assert {i for i, _ in drawn(Knobs(1.0, 1.0, 2), [0.1, 0.6, 0.9], [0.25] * 4)} == {0, 1}


def test_the_largest_uniform_never_lands_on_a_token_without_mass():
    largest = 1 - 2**-53
    assert drawn(Knobs(1.0, 1.0, 1), [largest], [0.7, 0.2, 0.1])[0][0] == 0


def test_rows_with_different_settings_do_not_mix():
    knobs = knob_tensors([Knobs(1.0, 1.0, -1), Knobs(0.0, 1.0, -1), Knobs(1.0, 1.0, 2)], 4)
    logits_BV = torch.tensor(PROBABILITIES).log().repeat(3, 1)
    ids_B, logprobs_B = draw(logits_BV, knobs, torch.tensor([0.701, 0.701, 0.701], dtype=torch.float64))
    assert ids_B.tolist() == [3, 1, 3]
    assert logprobs_B.tolist() == pytest.approx([LN[0.3], LN[0.5], LN[0.375]], abs=1e-6)
