"""How a model is asked: three wire formats, two transports, one protocol."""
