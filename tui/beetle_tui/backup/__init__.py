"""The parts of the area Backup."""
