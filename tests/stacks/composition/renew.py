"""Write the golden graphs again after a change that is meant: `python -m tests.stacks.composition.renew`."""

from tests.stacks.composition.files import write

if __name__ == "__main__":
    write()
