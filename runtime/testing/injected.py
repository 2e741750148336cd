"""What is raised on purpose, so that everybody can tell it from a bug."""


class InjectedCrash(Exception):
    """Raised in place of a step, because a test wanted it."""
