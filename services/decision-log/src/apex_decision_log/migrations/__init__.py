"""The database's schema, step by step. Additive: a version's code runs on the schema of the next one."""
