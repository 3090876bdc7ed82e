"""The words of the sample task; its people, places and films are invented."""

from __future__ import annotations


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


REGIONS = ("Africa", "Americas", "Asia", "Europe", "Oceania")

GIVEN_NAMES: dict[str, tuple[str, ...]] = {
    "Africa": _words("amara chidi fatou kofi lindiwe mariam nia sefu tariq wanjiru yusuf zola"),
    "Americas": _words("alma bruno camila dwight elena hector ines joaquin luz marcus nora wyatt"),
    "Asia": _words("akira bao divya farhan haruka jiwoo kavya linh meilin ravi siti yuto"),
    "Europe": _words("agnes bastien clara dmitri eilidh florian greta henrik ilse marek oona piotr"),
    "Oceania": _words("aroha callum hana isla kahu leilani mele nikau ruby sione tane tui"),
}

SURNAMES: dict[str, tuple[str, ...]] = {
    "Africa": _words(
        "abenaro bekelani danfora ekwenze gathuri idowale jallowe khumani mwendara nkosari okaforo tessemu"
    ),
    "Americas": _words(
        "ashgrove barrancos calderosa delmonte-ruiz eastlake fontarra harrowby larrabez mendizo pinewell"
        " quispari whitlowe"
    ),
    "Asia": _words(
        "arisawano bhandarkel chowdhar fujisaka guanlin hoangdo iyerani kimura-seo nakazen pereramal"
        " rahmadi wangchuko"
    ),
    "Europe": _words(
        "albrechtsen-voll brightwater castellaro dubroveau eriksholm fennimore gruberwald kowalenko"
        " lindqvarn montrevel novakesz oreillane"
    ),
    "Oceania": _words(
        "barrowdene faleatonu hakaraia-moss kereama-low makiritea ngatorere pukekawa tauiliili-vea"
        " tuimavave waratahn whetumaru wirrawell"
    ),
}

PLACES: dict[str, tuple[str, ...]] = {
    "Africa": ("university-adunara", "institute-kibonde", "university-oumela", "college-zanvari"),
    "Americas": (
        "university-port-alder",
        "institute-santa-belara",
        "university-lakemont",
        "college-cedar-junction",
        "university-nova-ribera",
    ),
    "Asia": ("university-hanamori", "institute-jinhewan", "university-devipalli", "college-batu-senja"),
    "Europe": (
        "university-northmoor",
        "institute-steinwalde",
        "university-vallebruna",
        "college-saint-orlan",
    ),
    "Oceania": ("university-kauriwhai", "institute-tasman-bluff", "university-wirrabeen"),
}

# Neighbours in this list share people, as neighbouring fields do.
FIELDS = (
    "fair ranking",
    "recommender systems",
    "web search",
    "question answering",
    "machine translation",
    "speech synthesis",
    "whistled languages",
    "sign language recognition",
    "medical imaging",
    "protein folding",
    "crop genetics",
    "soil chemistry",
    "glacier acoustics",
    "ocean modelling",
    "weather forecasting",
    "remote sensing",
    "robot navigation",
    "formal verification",
    "quantum compilers",
    "online privacy",
)

# A theme and the nouns that its titles are made with; neighbours share films.
THEMES: dict[str, tuple[str, ...]] = {
    "heists": ("vault", "locksmith", "getaway"),
    "undercover detectives": ("informant", "alibi", "stakeout"),
    "courtroom trials": ("verdict", "juror", "affidavit"),
    "newspaper reporters": ("headline", "newsroom", "correspondent"),
    "beekeepers": ("hive", "apiary", "honeycomb"),
    "family farms": ("orchard", "harvest", "barn"),
    "small-town weddings": ("bouquet", "bridesmaid", "banquet"),
    "sibling rivalry": ("inheritance", "twin", "heirloom"),
    "boarding schools": ("dormitory", "headmistress", "blazer"),
    "chess players": ("gambit", "bishop", "stalemate"),
    "lighthouse keepers": ("lantern-room", "foghorn", "keeper"),
    "sea voyages": ("harbour", "steamer", "compass"),
    "shipwrecks": ("reef", "castaway", "salvage"),
    "mountain climbers": ("summit", "crevasse", "base-camp"),
    "train journeys": ("sleeper-car", "signalman", "junction"),
    "border crossings": ("checkpoint", "passport", "frontier"),
    "jazz musicians": ("trumpet", "quartet", "encore"),
    "dance competitions": ("ballroom", "tango", "slipper"),
    "retired boxers": ("cornerman", "gymnasium", "knockout"),
    "time travel": ("clockmaker", "paradox", "yesterday"),
}

ADJECTIVES = _words(
    "amber borrowed brass copper crooked drowsy faded forgetful glass gilded hollow hundredth lopsided marble"
    " midwinter nameless overdue patient porcelain roundabout salted fourteenth umber unlikely velveteen"
    " wayward"
)
