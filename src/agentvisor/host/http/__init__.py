"""The HTTP API on port 8090: paths, fields and errors of the LangGraph server and Agent Protocol."""
