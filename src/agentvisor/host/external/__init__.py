"""External checkpoint storage: values too large for Temporal, in an object store."""
