"""Scoring on a Dask cluster: the pieces of `fairevals.evaluation` on Dask's executor."""

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
    """Dask's executor, which can also send a value once for all pieces."""

    def __init__(self, client: Any) -> None:
        self._client = client
        # `pure` would hash every argument to find repeated calls, and there are none. Dask repeats a piece whose
        # worker dies; one that raises an error is not repeated.
        self._executor: Executor = client.get_executor(pure=False)
        self.jobs = max(1, sum(client.nthreads().values()))

    def share(self, value: Any) -> Any:
        """Send the value to one worker, from which the others fetch it when they need it.

        It is the result of a task, not scattered data: if all workers that hold it die, it is computed again.
        """
        config: Any = import_module("dask.config")
        with config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):
            return self._client.submit(_same, value, pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call the function on a worker; arguments from `share` are replaced by their values there."""
        return self._executor.submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._executor.shutdown(wait=wait)


@contextmanager
def connected(address: str) -> Iterator[Cluster]:
    """Connect to the cluster at an address such as `tcp://host:8786`; it keeps running afterwards."""
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
        raise FairevalsError(f"workers of the Dask cluster die while scoring: {reason}") from None
    except CancelledError:
        raise FairevalsError(f"the connection to the Dask cluster at {escape(address)!r} was lost") from None
    finally:
        client.close()
