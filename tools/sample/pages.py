"""The invented documents of the sample task: pages on researchers, and films."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from tools.sample.draws import Draws
from tools.sample.words import ADJECTIVES, FIELDS, GIVEN_NAMES, PLACES, REGIONS, SURNAMES, THEMES

Shares = tuple[float, ...]

GROUPS: dict[str, tuple[str, ...]] = {
    "HINDEX": ("<10", "10-29", "30-49", ">=50"),
    "REGION": REGIONS,
    "ORIGIN": ("Africa", "Americas", "Asia", "Europe"),
}

UNMAPPED = 0.06  # share of pages whose membership in an attribute is not known
SHARED_PAGE = 0.3  # share of researcher pages that name several people
AT_HOME = 0.7  # share of people who work in the region they come from

# The share of pages from each region, and the h-indices there: the imbalance that fairness measures detect.
REGION_WEIGHTS = (0.21, 0.18, 0.25, 0.21, 0.15)
ORIGIN_WEIGHTS = (0.16, 0.34, 0.24, 0.26)
HINDEX_WEIGHTS = {
    "Africa": (0.44, 0.32, 0.16, 0.08),
    "Americas": (0.20, 0.30, 0.26, 0.24),
    "Asia": (0.38, 0.34, 0.18, 0.10),
    "Europe": (0.26, 0.32, 0.24, 0.18),
    "Oceania": (0.38, 0.34, 0.18, 0.10),
}
REGION_FAME = {"Africa": 0.0, "Americas": 1.0, "Asia": 0.1, "Europe": 0.3, "Oceania": 0.0}


@dataclass(frozen=True, eq=False)  # compared by identity, so that pages can be keys
class Page:
    """A document: its id, the topics it is mainly and partly about, its fame in 0…1, its memberships."""

    doc: str
    main: int  # a topic's position in its list of topics
    side: int
    fame: float
    memberships: dict[str, Shares]  # without the attributes for which the page is unmapped

    def share(self, attribute: str) -> Shares:
        """The membership in the attribute's groups, uniform if it is unknown."""
        size = len(GROUPS[attribute])
        return self.memberships.get(attribute, (1.0 / size,) * size)


@dataclass(frozen=True)
class Person:
    """A researcher: a name, the share in each h-index group and in each region."""

    name: str
    hindex: Shares
    region: Shares


def mean_shares(shares: Iterable[Shares]) -> Shares:
    """The mean of several memberships.

    >>> mean_shares([(1.0, 0.0), (0.5, 0.5)])
    (0.75, 0.25)
    """
    columns = list(zip(*shares, strict=True))
    return tuple(math.fsum(column) / len(column) for column in columns)


def researcher_page(main: int, side: int, draws: Draws) -> Page:
    """The page of one researcher, or of a group of two, four or five."""
    place_region = REGIONS[draws.weighted(REGION_WEIGHTS)]
    place = draws.pick(PLACES[place_region])
    several = draws.uniform() < SHARED_PAGE
    people = [_person(place_region, draws) for _ in range(draws.pick((2, 4, 5)) if several else 1)]
    hindex = mean_shares(person.hindex for person in people)
    region = mean_shares(person.region for person in people)
    owner = f"{FIELDS[main].replace(' ', '-')}-group" if several else people[0].name
    seniority = math.fsum(group * share for group, share in enumerate(hindex)) / (len(hindex) - 1)
    fame = 0.65 * seniority + 0.35 * REGION_FAME[place_region]
    return Page(f"{owner}.{place}", main, side, fame, _known({"HINDEX": hindex, "REGION": region}, draws))


def film(main: int, side: int, draws: Draws) -> Page:
    """A film with a title made from words of its theme."""
    group = draws.weighted(ORIGIN_WEIGHTS)
    origin = GROUPS["ORIGIN"][group]
    noun = draws.pick(list(THEMES.values())[main])
    given_name = draws.pick(GIVEN_NAMES[origin])
    adjective = draws.pick(ADJECTIVES)
    title = draws.pick(
        (
            f"the-{adjective}-{noun}",
            f"the-{adjective}-{noun}",
            f"{given_name}-and-the-{noun}",
            f"the-{noun}-of-{given_name}-{draws.pick(SURNAMES[origin])}",
        )
    )
    year = draws.between(1951, 2023)
    fame = 0.85 * REGION_FAME[origin] + 0.15 * draws.uniform()
    return Page(f"{title}-{year}", main, side, fame, _known({"ORIGIN": _all_in(group, 4)}, draws))


def _person(place_region: str, draws: Draws) -> Person:
    at_home = draws.uniform() < AT_HOME
    origin = place_region if at_home else draws.pick(REGIONS)
    name = f"{draws.pick(GIVEN_NAMES[origin])}-{draws.pick(SURNAMES[origin])}"
    hindex = _all_in(draws.weighted(HINDEX_WEIGHTS[place_region]), len(GROUPS["HINDEX"]))
    here = draws.pick((0.5, 0.7))
    region = tuple(
        here * (name_of == place_region) + (1.0 - here) * (name_of == origin) for name_of in REGIONS
    )
    return Person(name, hindex, region)


def _all_in(group: int, size: int) -> Shares:
    return tuple(float(index == group) for index in range(size))


def _known(memberships: dict[str, Shares], draws: Draws) -> dict[str, Shares]:
    return {attribute: share for attribute, share in memberships.items() if draws.uniform() >= UNMAPPED}
