"""All crews and flows of this folder behind one name, so that a host has one guest to start."""

import importlib

from agents.signs import read


def made():
    """What the test has named for this thread: "module:name"."""
    module, _, name = read("agent").partition(":")
    return getattr(importlib.import_module(module), name)
