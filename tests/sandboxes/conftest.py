import pytest

pytest.register_assert_rewrite("attempts", "sandbox_fixtures", "sandbox_suite")

from sandbox_fixtures import config, open_dir, proxy, sandbox  # noqa: E402, F401
