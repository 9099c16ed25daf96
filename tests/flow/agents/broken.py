"""A file that does not import."""

import not_there_at_all  # noqa: F401


def agent(given):
    return given
