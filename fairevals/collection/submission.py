"""Submissions: runs as they come from participants, checked against a task."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from fairevals.collection.collection import Collection
from fairevals.collection.run import Run
from fairevals.collection.spelling import variant_remarks
from fairevals.errors import FairevalsError, InputError, Place
from fairevals.io.archives import files_in, is_submission
from fairevals.io.check import Rules, check_lists, check_run
from fairevals.io.dataset import is_dataset
from fairevals.io.lines import Problem
from fairevals.io.metadata import check_metadata
from fairevals.io.runs import RunOptions, is_table
from fairevals.io.streams import Source


def check_submission(
    path: str | os.PathLike[str],
    collection: Collection,
    *,
    max_documents: int | None = None,
    policy: str | None = None,
) -> Iterator[Problem]:
    """Everything that is wrong with a run file or folder, in the order of its lines; `fairevals validate` prints it.

    `max_documents` and `policy` override the task's. A table or a folder of parquet files is either readable or not;
    then its topics are checked. Of any other folder and of a zip archive, all files are checked one after the other.
    """
    if is_submission(path):
        try:
            files = files_in(path)
        except InputError as error:
            yield Problem(error.place, "unreadable", error.found, error.expected)
            return
        for file in files:
            yield from check_submission(file, collection, max_documents=max_documents, policy=policy)
        return
    task = collection.task
    rules = Rules(
        topics=dict.fromkeys(collection.topics),
        max_documents=max_documents or task.max_documents,
        samples=(policy or task.policy.kind) == "samples",
        order=task.order,
        trailing=task.conventions == "trec_eval",
        style=True,
    )
    options, ranked = RunOptions(rules.order, rules.samples, trailing=rules.trailing), None
    try:
        source = path if is_dataset(path) else Source.of(path)
        if isinstance(source, Source) and not is_table(source):
            yield from check_run(source, rules)
            with suppress(FairevalsError):  # reported above
                ranked = Run.open(source, options)
            yield from check_metadata(source)
        else:
            ranked = Run.open(source, options)
            counts = (ranked.offsets[1:] - ranked.offsets[:-1]).tolist()
            yield from check_lists(ranked.source, [topic for topic, _ in ranked.lists], counts, rules)
        for remark in variant_remarks(ranked, collection.qrels) if ranked is not None else ():
            yield Problem(Place(os.fspath(path)), "spelling", remark, "the same characters", warning=True)
    except FairevalsError as error:  # the file cannot be opened, is cut short, or is beyond the limits
        if isinstance(error, InputError):
            yield Problem(error.place, "unreadable", error.found, error.expected)
        else:
            yield Problem(Place(os.fspath(path)), "unreadable", str(error))
