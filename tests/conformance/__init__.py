"""One body of cases, run over every transport: in process, over the socket, through the command line."""
