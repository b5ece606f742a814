"""Fetches the pages of a list, and goes on after a crash where it was: the checkpoint is the number of pages that are done."""
import urllib.request

from stint import Client, Fail, Job, Worker


def fetch(job: Job) -> dict[str, int]:
    pages = job.payload["pages"]
    if not pages:
        raise Fail("payload.pages is empty", retry=False)
    for number in range(job.saved or 0, len(pages)):
        with urllib.request.urlopen(pages[number], timeout=30) as reply:
            reply.read()
        job.checkpoint(number + 1)  # raises if the task was cancelled
        job.progress("page %d" % (number + 1), 100 * (number + 1) / len(pages))
    return {"pages": len(pages)}


if __name__ == "__main__":
    Worker(Client(), fetch, queues=["pages"], concurrency=4).run()
