"""The subcommands of `trial-driver`: each module has `add_parser(subparsers)` and `run(args)`."""
