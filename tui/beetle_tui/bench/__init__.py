"""The parts of the area Recall."""
