"""
Golden vectors: what the wire gives for fixed input, byte for byte.

Another implementation of the wire must reproduce these files. `python -m tests.vectors` writes them again; a
change in them is a change of the wire's version, and is to be argued for.
"""
