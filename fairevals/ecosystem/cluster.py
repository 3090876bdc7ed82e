"""Scoring on a Dask cluster: the pieces of `fairevals.evaluation` over Dask's own executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from fairevals.errors import FairevalsError, UsageError, escape
from fairevals.evaluation import SharingExecutor


def _same(value: Any) -> Any:
    return value


class Cluster(SharingExecutor):
    """Dask's executor, to which a value can be sent once for all pieces."""

    def __init__(self, client: Any) -> None:
        self._client = client
        # `pure` would have every argument hashed, to find calls that are the same; none are. A piece whose worker
        # dies is done again without being asked to; one that raises an error would only raise it again.
        self._executor: Executor = client.get_executor(pure=False)
        self.jobs = max(1, sum(client.nthreads().values()))

    def share(self, value: Any) -> Any:
        """Send the value to one worker, from which the others get it when they need it.

        It is the result of a task and not scattered data: should all workers that hold it die, the scheduler has
        it made again.
        """
        config: Any = import_module("dask.config")
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(_same, value, pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a worker call the function; what `share` gave is replaced by the value there."""
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Forget what was submitted; the cluster is not ours to stop."""
        self._executor.shutdown(wait=wait)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """The cluster at an address, such as `tcp://host:8786`; at the end it is left as it was found."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise UsageError("scoring on a cluster needs: pip install 'fairevals[dask]'") from None
    try:
        client = distributed.Client(address, timeout="15s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        reason = escape(str(error).split("\n")[0], 120) or type(error).__name__
        raise UsageError(f"there is no Dask scheduler at {escape(address)!r} ({reason})") from None
    try:
        if not client.nthreads():
            raise UsageError(f"the Dask cluster at {escape(address)!r} has no workers")
        yield Cluster(client)
    except distributed.scheduler.KilledWorker as error:
        reason = escape(str(error).split("\n")[0], 200)
        raise FairevalsError(f"the workers of the Dask cluster die at a piece: {reason}") from None
    except CancelledError:
        raise FairevalsError(f"the Dask cluster at {escape(address)!r} went away") from None
    finally:
        client.close()
