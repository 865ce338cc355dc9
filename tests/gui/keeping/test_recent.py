"""Files that were opened last: in the menu, the palette and on the empty page."""

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest

from hgviz import settings
from hgviz.gui.dialogs import ErrorDialog
from hgviz.gui.palette import Finder
from hgviz.gui.sessions import place_of
from hgviz.resources import resource
from hgviz.settings import MOST, newest


def files(program):
    """What the menu offers above its own action."""
    own = program.frame.actions_by_name["clear_recent"]
    actions = program.frame.menus["Open recent"].actions()
    return [one.text() for one in actions if one is not own and not one.isSeparator()]


def dialog(program):
    return program.frame.findChild(ErrorDialog)


def test_the_newest_stands_first_and_the_oldest_go():
    assert newest(("a", "b"), "b") == ("b", "a")
    assert newest(tuple(map(str, range(MOST))), "new") == ("new", *map(str, range(MOST - 1)))


def test_what_is_opened_is_remembered_for_the_next_start(program, kept, until):
    assert not files(program) and not program.frame.actions_by_name["clear_recent"].isEnabled()
    program.commands.open_path(str(kept))
    until(lambda: program.session.capture is not None)
    assert settings.load().recent == (str(kept),)
    assert files(program) == ["&1   kept.h5"]
    assert program.frame.actions_by_name["clear_recent"].isEnabled()


def test_files_of_one_name_are_told_apart_by_their_folder(program, kept, tmp_path):
    program.commands.recent.add(str(kept))
    program.commands.recent.add("/elsewhere/kept.h5")
    assert files(program) == ["&1   kept.h5   /elsewhere", f"&2   kept.h5   {tmp_path}"]


def test_what_comes_with_hgviz_is_not_listed(program):
    program.commands.opened_before[str(resource("sample/hourglass"))] = "hourglass-sample"
    assert program.session.recent == () and settings.load().recent == ()


def test_a_path_is_kept_whole_whatever_the_folder_at_hand(program, kept, monkeypatch):
    monkeypatch.chdir(kept.parent)
    program.commands.opened_before["kept.h5"] = "kept.h5"
    assert program.session.recent == (str(kept),)


def test_one_that_has_gone_says_so_and_can_be_removed(program, kept, until):
    program.commands.recent.add(str(kept))
    kept.unlink()
    program.commands.recent.look()
    until(lambda: program.session.gone)
    assert "not there any more" in files(program)[0]
    program.frame.menus["Open recent"].actions()[0].trigger()
    until(lambda: dialog(program) is not None)
    said = " ".join(dialog(program).error.lines)
    assert "kept.h5 is not there any more" in said and str(kept) in said
    QTest.keyClick(dialog(program).default, Qt.Key.Key_Return)
    assert program.session.recent == () and settings.load().recent == ()
    assert not program.frame.menus["Open recent"].menuAction().isEnabled()


def test_one_that_is_broken_is_no_missing_file(program, kept, until):
    kept.write_bytes(b"nothing that can be opened")
    program.commands.open_recent(str(kept))
    until(lambda: dialog(program) is not None)
    assert "not there" not in " ".join(dialog(program).error.lines)


def test_the_list_is_cleared_by_its_action(program, kept):
    program.commands.recent.add(str(kept))
    program.commands.run("clear_recent")
    assert program.session.recent == () and settings.load().recent == ()


def test_the_empty_page_offers_them(program, kept, until):
    page = program.empty.recent
    assert page.isHidden()
    program.commands.recent.add(str(kept))
    assert page.isVisible()
    (link,) = [one for one in page.findChildren(type(program.empty._buttons[0])) if one.text()]
    link.click()
    until(lambda: program.session.capture is not None)


def test_the_palette_offers_them_and_says_where_they_lie(program, kept, until):
    program.commands.recent.add(str(kept))
    program.commands.run("find")
    (finder,) = program.frame.findChildren(Finder)
    QTest.keyClicks(finder.field, "kept")
    entry, _ = finder.model.shown[0]
    assert (entry.words, entry.note) == ("Open kept.h5", place_of(str(kept)))
    QTest.keyClick(finder.field, Qt.Key.Key_Return)
    until(lambda: program.session.capture is not None)


def test_what_was_found_lately_comes_first_in_the_palette(opened):
    opened.commands.run("find")
    (finder,) = opened.frame.findChildren(Finder)
    QTest.keyClicks(finder.field, "fit the map")
    QTest.keyClick(finder.field, Qt.Key.Key_Return)
    assert settings.load().used == ("fit",)
    opened.commands.run("find")
    finder = next(one for one in opened.frame.findChildren(Finder) if one.isVisible())
    assert finder.model.shown[0][0].action == "fit"
    QTest.keyClicks(finder.field, "map")  # stands later in its words than in "Look: map"
    assert finder.model.shown[0][0].action == "fit"
    finder.finish()


def test_places_are_said_as_people_write_them(monkeypatch):
    monkeypatch.setenv("HOME", "/home/me")
    assert place_of("/home/me/models/a.h5") == "~/models"
    assert place_of("/home/meg/a.h5") == "/home/meg"
