"""The nouns."""

from hgviz.core import HgvizError


def test_an_error_is_said_in_sentences_that_leave_names_alone():
    error = HgvizError("the text is empty", "there is nothing to attend to", "give some text")
    assert error.lines == (
        "The text is empty.", "There is nothing to attend to.", "Give some text.",
    )  # fmt: skip
    asked = HgvizError("layer 0 is odd", "is it never closed?")
    assert asked.lines == ("Layer 0 is odd.", "Is it never closed?")
    assert str(asked) == "layer 0 is odd. is it never closed?"
    named = HgvizError("hourglass cannot be opened", "config.json says dim 192", "")
    assert named.lines == ("hourglass cannot be opened.", "config.json says dim 192.")
