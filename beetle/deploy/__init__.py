"""Puts a frozen tree under a prefix, with a link in the path, a configuration and a service, and takes it away again.

Nothing here touches a store, and nothing that is switched to is incomplete. Where things go (`Layout`), what the daemon
is allowed (`Settings`, `Limits`) and which tools of the machine may be run (`Machine`) are handed in. Every start loads
this file for `frozen`: it imports nothing.
"""
