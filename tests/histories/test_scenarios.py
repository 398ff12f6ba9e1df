"""Each anomaly is prevented or allowed as the level says, on a real server. HISTORIES_PEER=oracle asks a real MongoDB instead."""

import os

import pytest
from scenarios import EXPECTED, outcome_of
from servers import MongoDB, Pando, client_of, require_transactions

PEER = MongoDB if os.environ.get("HISTORIES_PEER") == "oracle" else Pando
CASES = [(level, scenario) for level in PEER.levels for scenario in EXPECTED[level]]


@pytest.fixture(scope="module")
def server():
    server = PEER().start()
    yield server
    assert server.stop() == []


@pytest.mark.parametrize(("level", "scenario"), CASES, ids=lambda case: getattr(case, "__name__", case))
def test_each_level_prevents_what_it_forbids_and_allows_the_rest(server, level, scenario):
    with client_of(server.port) as client:
        require_transactions(client)
        assert outcome_of(scenario, client.scenarios, level) == EXPECTED[level][scenario]
