"""fairevals."""
