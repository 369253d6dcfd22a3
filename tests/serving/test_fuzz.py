"""Whatever schemathesis makes up from the description, nothing is answered by a defect or otherwise than described."""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis.specs.openapi.checks import positive_data_acceptance

import shortlist as sl
from shortlist.serving.app import make_app

REQUESTS = int(os.environ.get("SHORTLIST_FUZZ_REQUESTS", "40"))  # for each address
CHOSEN = settings(max_examples=REQUESTS, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)


@pytest.fixture(scope="module")
def schema(leaves):
    return schemathesis.openapi.from_asgi("/openapi.json", make_app(sl.load_run(leaves), "leaves"))


@pytest.mark.parametrize("address", ["POST /predict", "GET /model", "GET /healthz", "GET /metrics", "GET /"])
def test_the_server_keeps_what_its_description_says(schema, address: str) -> None:
    method, path = address.split()

    @CHOSEN
    @given(case=schema[path][method].as_strategy())
    def check(case: schemathesis.Case) -> None:
        # the description cannot say which columns and rules a run has: what it allows may still be refused with 422
        case.call_and_validate(excluded_checks=[positive_data_acceptance])

    check()


CELLS = st.none() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False) | st.integers() | st.text()


def test_any_cells_in_the_right_columns_are_answered_or_refused(client) -> None:
    @CHOSEN
    @given(rows=st.lists(st.fixed_dictionaries({"length": CELLS, "shore": CELLS}), min_size=1, max_size=3), k=CELLS)
    def check(rows, k) -> None:
        answer = client.post("/predict", json={"rows": rows, "rule": "average-k-1.5", "k": k})
        assert answer.status_code in (200, 422), answer.text
        assert "error" in answer.json() or len(answer.json()["sets"]) == len(rows)

    check()


def test_the_list_above_is_complete(schema) -> None:
    assert {path for path in schema} == {"/predict", "/model", "/healthz", "/metrics", "/"}
