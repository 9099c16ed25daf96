"""One file per framework: how an agent of that kind is run, and the only place that knows the framework."""
