"""Changes to files of HDF5 that a stranger could make."""

import json

import h5py
import numpy as np


def swap(path, name, value):
    """Put something else in the place of a dataset or group.

    value: an array, a link, the keywords of create_dataset, None for nothing, or a function of the
    array that was there, which returns one of these.
    """
    with h5py.File(path, "r+") as file:
        old = file[name][...] if isinstance(file.get(name), h5py.Dataset) else None
        file.pop(name, None)
        value = value(old) if callable(value) else value
        if isinstance(value, dict):
            file.create_dataset(name, **value)
        elif value is not None:
            file[name] = value


def restate(path, name, change):
    """Put another JSON document in the place of one: what change(document) returns, or leaves."""
    with h5py.File(path) as file:
        document = json.loads(bytes(file[name][:]))
    document = change(document) or document
    swap(path, name, np.frombuffer(json.dumps(document).encode(), "u1"))
