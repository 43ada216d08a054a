"""The tiny policy: a Qwen3-architecture model of under a million parameters that the quickstart trains on a CPU."""
