"""Prometheus metrics of one proxy, in a registry of its own so that several proxies can live in one process."""

from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

LATENCY_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """Counters that the routes raise."""

    def __init__(
        self, open_sessions: Callable[[], float], queue_pending: Callable[[], float], queue_leased: Callable[[], float]
    ) -> None:
        self.registry = CollectorRegistry()
        self.calls = Counter(
            "openforge_calls",
            "Model calls by dialect, policy and end",
            ("dialect", "policy", "end"),
            registry=self.registry,
        )
        self.engine_s = Histogram(
            "openforge_engine_seconds", "Seconds from request to engine answer", ("policy",),
            buckets=LATENCY_BUCKETS_S, registry=self.registry,
        )  # fmt: skip
        self.commit_s = Histogram(
            "openforge_commit_seconds", "Seconds from engine answer to its commit",
            buckets=LATENCY_BUCKETS_S, registry=self.registry,
        )  # fmt: skip
        self.tokens = Counter("openforge_tokens", "Tokens", ("policy", "kind"), registry=self.registry)
        self.rollouts = Counter(
            "openforge_rollouts", "Results handed in by runners", ("graded",), registry=self.registry
        )
        gauges = (
            ("openforge_sessions_open", "Sessions that take calls", open_sessions),
            ("openforge_queue_pending", "Rollouts that nobody runs yet", queue_pending),
            ("openforge_queue_leased", "Rollouts under way", queue_leased),
        )
        for name, text, read in gauges:
            Gauge(name, text, registry=self.registry).set_function(read)

    def page(self) -> bytes:
        """The text of ``GET /metrics``."""
        return generate_latest(self.registry)
