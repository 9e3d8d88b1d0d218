"""Uploaded skills: the skill registry."""
