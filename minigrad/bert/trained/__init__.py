"""The reduced BERT that comes with the library, trained on the Python documentation, in half precision.

`python -m minigrad.bert fill-mask` takes it where no model is named.
"""

from pathlib import Path


def trained_model() -> Path:
    """The model's folder, for `from_pretrained`."""
    return Path(__file__).parent
