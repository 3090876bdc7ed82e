"""The columnar model: runs, qrels and groups, aligned into padded blocks of topics."""

from fairevals.collection.views import (
    AttributeView,
    Exposed,
    ExposedTopics,
    Ranked,
    View,
)
