"""What is said in the benchmark: the same for everybody, made of words of a home and a workshop."""

from __future__ import annotations

import random

WORDS = tuple(
    """
    anchor basket battery bearing bicycle blanket bottle bracket breakfast bridge bucket button cabinet candle carpet
    ceiling chain chair chimney clock copper corner cottage cousin curtain cushion dinner doctor drawer engine evening
    fence filter flower fountain garage garden gasket gate glass grandmother hallway hammer handle harbour heater hinge
    holiday island jacket journey kettle kitchen ladder lamp letter lever magnet market meadow mirror morning motor
    neighbour needle orchard oven paint paper pencil piano picture pillow pipe plate pocket pump rabbit radio railway
    river roof rope saddle school screw shelf shoulder sister spring staircase station stone street summer switch table
    teacher tent thread ticket timber torch tower tractor train umbrella valley valve village violin wagon wall washer
    water weather wheel window winter wire workshop yard
    """.split()  # noqa: SIM905 - a hundred lines otherwise
)
VERBS = ("stands behind", "was sold with", "belongs beside", "leaks near", "was painted like", "hangs above", "needs")
SENTENCES = 4
"""Of a turn: about 150 characters in all."""


def turn_text(writer: int, number: int) -> str:
    """What a writer says in its turn of this number."""
    chance = random.Random(writer * 1_000_003 + number)
    return " ".join(_sentence(chance) for _ in range(SENTENCES))


def _sentence(chance: random.Random) -> str:
    # A few words are said often, most of them seldom, as in real talk.
    one, two = (WORDS[min(int(chance.paretovariate(0.6)) - 1, len(WORDS) - 1)] for _ in range(2))
    return f"The {one} {chance.choice(VERBS)} the {two} {chance.randrange(1, 400)}."


def question(number: int) -> str:
    """What is asked: two of the words."""
    return f"where is the {' '.join(random.Random(-1 - number).sample(WORDS, 2))}"
