"""Adverbs, adjectives and animals for the names of `RandomPet`."""

ADVERBS = """
    boldly calmly duly early fairly firmly gently gladly kindly largely lightly loosely merely
    mildly neatly nicely openly partly plainly quietly rarely readily safely slowly softly solely
    surely truly vastly wisely
""".split()  # noqa: SIM905 - a list of a hundred quoted words is not easier to read
ADJECTIVES = """
    able active amber brave bright calm clever crisp daring eager exact fair fast fine fleet gentle
    golden grand handy happy honest ideal keen kind light lively loyal lucid mellow merry modest
    neat noble polite prime proud quick quiet rapid rare robust sharp silent smart solid sound
    steady stout sunny swift tidy tough trusty upright vivid warm wise witty
""".split()  # noqa: SIM905 - a list of a hundred quoted words is not easier to read
ANIMALS = """
    ant badger bat bear beaver bee bison boar cat cobra crane crow deer dingo dog dolphin dove duck
    eagle eel elk falcon ferret finch fox frog gecko gnu goat goose hare hawk heron horse hound ibex
    jackal jay koala lark lemur lion llama lynx mole moose moth mouse newt orca otter owl ox panda
    parrot pig pony puma quail rabbit ram raven robin salmon seal shark sheep shrew skunk snail
    stork swan tapir tiger toad trout turtle viper vole walrus wasp weasel whale wolf wombat yak
    zebra
""".split()  # noqa: SIM905 - a list of a hundred quoted words is not easier to read
