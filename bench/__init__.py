"""Benchmarks: `python -m bench.run` measures and prints JSON."""
