"""The librarian: the embedded default model.  No key, no network, no weights.

It is not a language model, and says so.  It takes the key words of a question,
looks for them with the same tools as any model, and answers with quotes and the
places they stand at.  The same conversation always gives the same answer.
"""

from tenure.runtime.doors.models.librarian.model import librarian

__all__ = ["librarian"]
