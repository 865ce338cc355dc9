"""A map as a page of HTML: every weight of it, no network, nothing that a text could break."""

import json
import re
from base64 import b64decode
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from hgviz import tasks
from hgviz.core import Display, HgvizError, Selection
from hgviz.figures import Spec
from hgviz.figures.cells import seen_cells
from tests.making import make_capture

TEXT = "A page that is sent: </script><b>&amp; “it” still reads. " * 3


def page_of(capture, path, **spec):
    panel = tasks.panel(Spec("map", Selection(1, 0), **spec), capture)
    tasks.draw(panel, path)
    text = path.read_text("utf-8")
    (script,) = re.findall(r"const data = (\{.*\});\n", text)
    return text, json.loads(script)


@pytest.mark.parametrize("signed", [False, True])
def test_the_page_holds_every_weight_name_and_colour(tmp_path, signed):
    capture = make_capture(TEXT[:128], strides=(1, 2), heads=2, signed=signed)
    text, data = page_of(capture, tmp_path / "m.html", display=Display(palette="viridis"))
    expected = capture.maps[1].read(0)
    weights = np.frombuffer(b64decode(data["weights"]), "<f4").reshape(expected.shape)
    np.testing.assert_array_equal(weights, expected.astype(np.float32))
    bits = np.unpackbits(np.frombuffer(b64decode(data["seen"]), np.uint8))[: expected.size]
    np.testing.assert_array_equal(bits.reshape(expected.shape), seen_cells(capture, 1, head=0))
    picture = Image.open(BytesIO(b64decode(data["picture"])))
    assert picture.size == expected.shape[::-1]
    assert (len(data["rows"]), len(data["columns"])) == expected.shape
    assert "hgviz figure" in data["record"] and data["title"] == "Head 1.0"
    assert len(text.encode()) < 300_000
    assert not re.search(r"https?:|src=\"|import |fetch\(", text)
    assert text.count("</script>") == 1  # that of a token is written in another way


def test_what_no_page_can_show_is_refused(tmp_path, monkeypatch):
    capture = make_capture("Sand runs. ", strides=(1,), heads=1)
    panel = tasks.panel(Spec("map", Selection(0, 0)), capture)
    other = replace(panel, spec=replace(panel.spec, kind="links"))
    for one, path, said in (
        (other, tmp_path / "l.html", "of kind links"),
        (panel, tmp_path / "none" / "m.html", "does not exist"),
    ):
        with pytest.raises(HgvizError, match=said):
            tasks.draw(one, path)
    monkeypatch.setattr("hgviz.figures.output.MOST_POSITIONS", 4)
    with pytest.raises(HgvizError, match="the limit for HTML is 4"):
        tasks.draw(panel, tmp_path / "m.html")
    assert not [*tmp_path.iterdir()]
