"""One body of cases, run over every way in: in process, over the socket, through the command line."""
