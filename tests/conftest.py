"""Options of the test run, and how Hypothesis draws its cases."""

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

# Hypothesis makes five of six cases by copying parts of the one before, and so draws few different programs. Under any
# other name, its own provider makes every case anew.
AVAILABLE_PROVIDERS["fresh"] = HypothesisProvider

# The same cases in every run, so that a failure is the fault of the change at hand; `--hypothesis-profile=explore`
# looks for new ones.
settings.register_profile("steady", backend="fresh", derandomize=True, database=None, deadline=None)
settings.register_profile("explore", backend="fresh", derandomize=False, deadline=None, print_blob=True)
settings.load_profile("steady")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite the expected files of golden cases")


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--update-golden"))
