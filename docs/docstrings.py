"""How the reference reads docstrings: as they are once a module is imported, and with doctests shown as code."""

import re
from importlib import import_module
from inspect import cleandoc

import griffe

EXAMPLE = re.compile(r"^>>> .*?(?=\n\s*\n|\Z)", re.S | re.M)


class Docstrings(griffe.Extension):
    """Takes docstrings and defaults of classes from the classes themselves, and puts every doctest into a fence."""

    def on_object(self, *, obj: griffe.Object, **kwargs: object) -> None:
        """Estimators complete their docstrings when imported; to Markdown, `>>>` would be a quotation."""
        if not obj.docstring:
            return
        text = obj.docstring.value
        if isinstance(obj, griffe.Class) and obj.parent is obj.module:
            cls = getattr(import_module(obj.module.path), obj.name)
            text = cleandoc(cls.__doc__)
            for name, attribute in obj.attributes.items():
                if attribute.value and isinstance(getattr(cls, name, cls), bool | float | int | str):
                    attribute.value = repr(getattr(cls, name))
        obj.docstring.value = EXAMPLE.sub(lambda match: f"```pycon\n{match[0]}\n```", text)
