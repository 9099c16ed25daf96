"""Raises while it is imported, two calls deep."""


def outer():
    inner()


def inner():
    raise RuntimeError("no key")


outer()
agent = None
