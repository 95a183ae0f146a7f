"""A cloud made of tables: what the emulated AWS and Google Cloud share.

`cloud.TableCloud` answers the engine from rows (`table`), templates (`templates`) and hooks (`site.Hooks`).
A cloud supplies its vocabulary: accounts or projects, how ids and links are formed, which values refer to
other resources, its tables, services and rules.
"""
