"""The verbs: what the two faces ask for. Each returns its result, and reports on its way how far it
is (hgviz.core.progress).

Their names and modules stand in __init__.pyi. A module is imported when one of its names is asked
for, so that importing this package costs nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
