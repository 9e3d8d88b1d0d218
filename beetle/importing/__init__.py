"""What people already have: readers of other programs' files, what sends their items, and what writes files again.

One file a format, each with a function from a `Source` to items (`items.py`). A reader is pure: it opens, asks and
writes nothing, so that whoever follows a host's transcript may use it too.
"""
