"""Each anomaly is prevented or allowed as the level says, on a real server."""

import pytest
from conftest import PEER
from scenarios import EXPECTED, outcome_of
from servers import client_of

CASES = [(level, scenario) for level in PEER.levels for scenario in EXPECTED[level]]


@pytest.mark.parametrize(("level", "scenario"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_each_level_prevents_what_it_forbids_and_allows_the_rest(server_of_each_engine, level, scenario):
    with client_of(server_of_each_engine.port) as client:
        expected = PEER.exceptions.get(scenario.__name__, EXPECTED[level][scenario])
        assert outcome_of(scenario, client.scenarios, PEER.read_concerns[level][0]) == expected
