"""How candidates are judged, and where an accepted one is stored."""
