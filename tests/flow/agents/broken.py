"""A file that does not import."""

import not_there_at_all  # noqa: F401


def agent(given):  # noqa: ANN001, ANN201
    return given
