"""The palettes: steady in lightness, fair to every eye, exact about zero."""

import numpy as np
import pytest
from cmap import Colormap
from hypothesis import given
from hypothesis import strategies as st

from hgviz import language, palettes
from hgviz.figures.page import line_style
from hgviz.palettes import PALETTES, SCALES, colours, contrasting_colour, palette_coordinates, ticks

BOTH = pytest.mark.parametrize("dark", [False, True])
UNSIGNED = [name for name, one in PALETTES.items() if not one.signed]
SIGNED = [name for name, one in PALETTES.items() if one.signed]

# Machado, Oliveira and Fernandes 2009, severity 1.0, on linear sRGB.
BLINDNESS = {
    "protan": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "deutan": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
               [-0.011820, 0.042940, 0.968881]],
    "tritan": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
               [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def linear(rgb):
    part = np.asarray(rgb, float) / 255
    return np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)


def lab(rgb, blindness=None):
    """CIE L*a*b* of sRGB colours, as a colour-blind eye sees them if asked."""
    light = linear(rgb)
    if blindness:
        light = np.clip(light @ np.array(BLINDNESS[blindness]).T, 0, 1)
    x, y, z = np.moveaxis(light @ XYZ.T / (XYZ @ np.ones(3)), -1, 0)
    x, y, z = (np.where(v > 0.008856, np.cbrt(v), 7.787 * v + 16 / 116) for v in (x, y, z))
    return np.stack([116 * y - 16, 500 * (x - y), 200 * (y - z)], axis=-1)


def channels(colour):
    """#RRGGBB as numbers."""
    return [int(colour[i : i + 2], 16) for i in (1, 3, 5)]


def ciede2000(one, two):
    """The difference of L*a*b* colours (Sharma, Wu and Dalal 2005)."""
    (l1, a1, b1), (l2, a2, b2) = np.moveaxis(one, -1, 0), np.moveaxis(two, -1, 0)
    grey = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2
    a1, a2 = (a * (1.5 - 0.5 * np.sqrt(grey**7 / (grey**7 + 25.0**7))) for a in (a1, a2))
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)
    h1, h2 = np.degrees(np.arctan2(b1, a1)) % 360, np.degrees(np.arctan2(b2, a2)) % 360
    turn = np.where(c1 * c2 == 0, 0, (h2 - h1 + 180) % 360 - 180)
    light, c = (l1 + l2) / 2, (c1 + c2) / 2
    h = np.where(c1 * c2 == 0, h1 + h2, (h1 + turn / 2) % 360)
    t = (1 - 0.17 * np.cos(np.radians(h - 30)) + 0.24 * np.cos(np.radians(2 * h))
         + 0.32 * np.cos(np.radians(3 * h + 6)) - 0.2 * np.cos(np.radians(4 * h - 63)))  # fmt: skip
    sl = 1 + 0.015 * (light - 50) ** 2 / np.sqrt(20 + (light - 50) ** 2)
    sc, sh = 1 + 0.045 * c, 1 + 0.015 * c * t
    bend = -2 * np.sqrt(c**7 / (c**7 + 25.0**7))
    bend = bend * np.sin(np.radians(60 * np.exp(-(((h - 275) / 25) ** 2))))
    dl, dc = (l2 - l1) / sl, (c2 - c1) / sc
    dh = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2)) / sh
    return np.sqrt(dl**2 + dc**2 + dh**2 + bend * dc * dh)


# of the test data that Sharma, Wu and Dalal 2005 give
SHARMA = (
    ((50.0, 2.6772, -79.7751), (50.0, 0.0, -82.7485), 2.0425),
    ((50.0, 0.0, 0.0), (50.0, -1.0, 2.0), 2.3669),
    ((50.0, 2.5, 0.0), (50.0, 0.0, -2.5), 4.3065),
    ((50.0, 2.5, 0.0), (73.0, 25.0, -18.0), 27.1492),
    ((60.2574, -34.0099, 36.2677), (60.4626, -34.1751, 39.4387), 1.2644),
    ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
)
# The lines that such an eye may take for one another by colour alone. Without red cones blue and
# pink, pink and sky; without green ones vermilion and orange, green and pink, pink and sky; without
# blue ones pink and orange, green and sky, blue and green, blue and sky.
CLOSE = {
    None: set(),
    "protan": {(0, 3), (3, 4)},
    "deutan": {(1, 5), (2, 3), (3, 4)},
    "tritan": {(3, 5), (2, 4), (0, 2), (0, 4)},
}


ROUNDING = 0.05  # of L*, at most: what 8 bits for a channel make of a colour
EVEN = 1.0  # of L*: how much the sides of a signed palette may differ at one magnitude


@pytest.mark.parametrize("name", UNSIGNED)
def test_an_unsigned_palette_only_grows_lighter(name):
    published = 255 * np.asarray(Colormap(name).lut(256)[:, :3])
    assert (colours(name) == np.rint(published)).all()
    light = lab(published)[:, 0]
    assert np.diff(light).min() > 0.05  # strictly, as it was published
    found = lab(colours(name))[:, 0]
    assert np.abs(found - light).max() < 0.25
    assert np.diff(found).min() > -ROUNDING
    assert np.diff(found[::2]).min() > 0  # strictly, of what is on the screen and in a figure
    assert found[-1] - found[0] > 75
    for blindness in BLINDNESS:
        assert np.diff(lab(colours(name), blindness)[::8, 0]).min() > 0.5


EYES = (None, *BLINDNESS)


@BOTH
@pytest.mark.parametrize("name", PALETTES)
def test_colours_stay_apart_for_every_eye_and_minus_is_not_mistaken_for_plus(name, dark):
    table = colours(name, dark)
    assert (table.shape, table.dtype, table.flags.writeable) == ((256, 3), np.uint8, False)
    for blindness in EYES:
        seen = lab(table, blindness)
        assert np.linalg.norm(np.diff(seen[::16], axis=0), axis=-1).min() > 2.3  # just noticeable
        if name not in SIGNED:
            continue
        light = seen[:, 0]  # steady on both sides, and even
        falling = light if not dark else -light
        assert np.diff(falling[:128]).min() > 0 and np.diff(falling[128:]).max() < 0
        assert blindness or np.abs(light - light[::-1]).max() < EVEN
        sides = ciede2000(seen[:128], seen[:127:-1])  # at equal magnitude, from 1 to 1/255
        magnitude = 1 - np.arange(128) / 127.5
        for least, apart in ((0.25, 30), (0.1, 15), (0.05, 8)):
            assert sides[magnitude > least].min() > apart


def test_the_signed_zero_sinks_into_the_pane():
    zero = palette_coordinates([0.0], (-1, 1), signed=True)
    assert palettes.paint(zero, colours("blue-red")).min() > 0xF0
    assert colours("blue-red", dark=True)[128].max() < 0x24


@BOTH
def test_lines_are_told_apart_by_colour_or_else_by_dashes_and_markers(dark):
    table = palettes.CATEGORICAL_DARK if dark else palettes.CATEGORICAL
    for blindness in EYES:
        seen = lab([channels(one) for one in table], blindness)
        apart = ciede2000(seen[:, None], seen[None])
        close = {(i, j) for i, j in np.argwhere(apart < 13).tolist() if i < j}
        assert apart[~np.eye(len(seen), dtype=bool)].min() > 8
        assert close <= CLOSE[blindness]
        for i, j in close:
            assert line_style(i).marker != line_style(j).marker
            assert line_style(i).dash != line_style(j).dash
    ground = palettes.DARK_PAGE if dark else palettes.LIGHT_PAGE
    for one in table:  # and seen on their ground
        dim, bright = sorted(palettes.luminance([channels(one), channels(ground.paper)]) + 0.05)
        assert bright / dim > 2
    looks = [line_style(number) for number in range(len(palettes.CATEGORICAL) * 4)]
    assert len({(one.marker, one.dash) for one in looks}) == len(looks)  # of many, even in grey


def test_the_difference_of_colours_is_that_of_the_standard():
    for one, two, expected in SHARMA:
        assert ciede2000(np.array(one), np.array(two)) == pytest.approx(expected, abs=1e-4)
        assert ciede2000(np.array(two), np.array(one)) == pytest.approx(expected, abs=1e-4)


values = st.floats(-1e6, 1e6, width=32)
scales = st.sampled_from(list(SCALES))


@given(st.lists(values, min_size=1), st.floats(1e-6, 1e6), scales)
def test_places_are_in_order_and_within_the_bar(data, high, scale):
    data = np.sort(np.array(data))
    for signed in (False, True):
        found = palette_coordinates(data, (0, high), scale, signed)
        assert found.dtype == np.float32
        assert found.min() >= 0
        assert found.max() <= 1
        assert np.diff(found).min(initial=0) >= 0


@given(values, st.floats(1e-6, 1e6), scales)
def test_signed_places_are_symmetric_and_limits_are_the_ends_of_the_bar(value, high, scale):
    plus, minus = palette_coordinates([value, -value], (-high, high), scale, signed=True)
    assert plus + minus == pytest.approx(1, abs=1e-6)
    assert np.sign(plus - 0.5) == np.sign(value) or abs(plus - 0.5) < 1e-6
    for top in (high, high * 1e24, high * 1e-24):
        assert palette_coordinates([0, top, np.inf], (0, top), scale).tolist() == [0, 1, 1]
        ends = palette_coordinates([-top, 0, top], (-top, top), scale, True).tolist()
        assert ends == [0, 0.5, 1]


def test_scales_bend_as_they_say():
    assert palette_coordinates([0.25], (0, 1), "linear")[0] == 0.25
    assert palette_coordinates([0.25], (0, 1), "sqrt")[0] == 0.5
    assert palette_coordinates([0.0, 1e-4, 1.0], (0, 1), "log").tolist() == pytest.approx(
        [0, 0.075, 1], abs=1e-3
    )
    with pytest.raises(ValueError, match="cube"):
        palette_coordinates([0.1], (0, 1), "cube")


def test_what_has_no_number_stays_apart_and_an_empty_range_is_one_colour():
    assert np.isnan(palette_coordinates([np.nan], (0, 1))[0])
    assert palette_coordinates([0.0, 3.0], (3, 3)).tolist() == [0, 0]
    assert palettes.paint(palette_coordinates([np.nan], (0, 1)), colours("viridis")).shape == (1, 3)
    assert palettes.limits_of(0, 0, signed=False) == (0, 1)
    assert palettes.limits_of(-0.5, 0.2, signed=True) == (-0.5, 0.5)


@given(st.floats(1e-12, 1e12), scales, st.booleans(), st.sampled_from([0.05, 0.1, 0.3, 0.6]))
def test_ticks_rise_from_end_to_end_and_keep_their_distance(high, scale, signed, gap):
    limits = (-high, high) if signed else (0.0, high)
    found = ticks(limits, scale, signed, gap)
    assert (found[0], found[-1]) == limits
    assert 0 in found
    assert np.diff(palette_coordinates(found, limits, scale, signed)).min() >= min(gap, 0.5) - 1e-6
    assert len({language.short_number(tick, signed) for tick in found}) == len(found)


@pytest.mark.parametrize("scale", palettes.SCALES)
def test_limits_too_near_each_other_have_no_ticks_between_them(scale):
    assert ticks((0.0, 5e-324), scale) == (0.0, 5e-324)
    assert palettes.even_ticks(0.0, 5e-324, 4) == [0.0]


@pytest.mark.parametrize(
    ("value", "signed", "text"),
    [(0.25, False, "0.25"), (0.8731, False, "0.873"), (-0.5, True, "−0.5"), (0.5, True, "+0.5"),
     (0.0, True, "0"), (3.2e-5, False, "3.2e−5"), (1.0, False, "1")],
)  # fmt: skip
def test_weights_are_written_as_people_read_them(value, signed, text):
    assert language.short_number(value, signed) == text


@given(st.tuples(*[st.integers(0, 255)] * 3))
def test_text_on_data_takes_the_better_contrast(rgb):
    light = palettes.luminance(rgb)
    on_black, on_white = (light + 0.05) / 0.05, 1.05 / (light + 0.05)
    assert tuple(contrasting_colour(rgb)) == ((0, 0, 0) if on_black > on_white else (255, 255, 255))
    assert max(on_black, on_white) >= 4.5


def test_data_get_a_palette_that_suits_their_sign():
    assert palettes.matching_palette("magma", False) == "magma"
    assert palettes.matching_palette("magma", True) == "blue-red"
    assert palettes.matching_palette("blue-red", False) == "viridis"
    assert palettes.matching_palette("no such palette", False) == "viridis"
