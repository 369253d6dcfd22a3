"""What is said of the machine."""

import platform

from shortlist.timing import describe_machine


def test_the_machine_is_described_without_naming_it():
    facts = describe_machine()
    assert {"processor", "cores", "memory", "python", "torch", "shortlist", "kernels"} <= facts.keys()
    text = " ".join(facts.values())
    assert platform.node() not in text.split()
    assert "/" not in text
