"""The parts of the area Memory."""
