"""The guest: a supervisor that speaks to the host, a warm zygote, and one fresh agent process per run."""
