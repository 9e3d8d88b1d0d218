"""A daemon under every kind of load for hours: what drifts, and which of its timers has stopped."""
