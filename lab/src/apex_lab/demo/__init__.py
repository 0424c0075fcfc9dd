"""`apex demo` and `apex up`: the embedded stack as commands. The CLI finds them by the entry point group."""
