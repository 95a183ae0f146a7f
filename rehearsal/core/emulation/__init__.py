"""Table-driven emulation, shared by AWS and Google Cloud.

`cloud.TableCloud` serves the engine from rows (`table`), templates (`templates`) and hooks (`site.Hooks`).
A cloud supplies its vocabulary: accounts or projects, how ids and links are formed, which values refer to
other resources, its tables, services and rules.
"""
