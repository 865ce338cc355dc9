"""The verbs: what the two faces ask for. Each is a generator of steps that returns its result.

Their names and modules stand in __init__.pyi. A module is imported when one of its names is asked
for, so that importing this package costs nothing.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
