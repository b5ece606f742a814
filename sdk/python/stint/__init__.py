"""stint for Python: a client for every route of the server, a worker loop, and a worker of a pool. See README.md."""
from . import api, pool
from .client import Client, Problem, Unreachable
from .worker import Block, Cancelled, Done, Fail, Job, Lost, Outcome, Parked, Release, Review, ShuttingDown, Stopped, Waiting, Worker

__all__ = ["api", "pool", "Client", "Problem", "Unreachable", "Worker", "Job", "Outcome", "Done", "Review", "Fail", "Block", "Release",
           "Stopped", "Cancelled", "Lost", "Parked", "ShuttingDown", "Waiting"]
__version__ = "0.1.0"
