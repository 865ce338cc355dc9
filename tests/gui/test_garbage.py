"""What is left to Python's garbage collector, which runs in whatever thread sets it off.

Qt wants its objects deleted in the thread they live in: one that Python deletes from a lane, while
the window handles its events, is a crash later and elsewhere.
"""

import gc

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent, QObject

from hgviz.gui.program import Program
from hgviz.gui.window import Window


def deleted():
    """Have Qt delete what waits for it."""
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)


def test_no_object_of_a_window_is_left_for_python_to_delete(app, capture, facts):
    gc.collect()
    frame = Window()
    frame.show()
    program = Program(frame)
    program.session.put(capture=capture, facts=dict(facts))
    for mode in ("inspect", "follow", "prune", "compare"):
        program.session.put(mode=mode)
        program.settle()
    program.close()
    frame.close()
    frame.deleteLater()
    deleted()
    program = frame = None
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        found = [one for one in gc.garbage if isinstance(one, QObject)]
        assert found  # there is a window in it, which Qt deleted
        # the hints are the application's own, and outlive every window
        left = {type(one).__name__ for one in found if shiboken6.isValid(one)} - {"QStyleHints"}
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
    assert not left
