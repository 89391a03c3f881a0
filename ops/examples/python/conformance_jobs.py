"""The jobs that `punctual conformance --run` asks a worker for: docs/remote-workers.md.

    npx punctual conformance --run "python3 ops/examples/python/conformance_jobs.py"
"""
import time

from worker import JobFailed, main


def echo(attempt, payload):
    return attempt.output("echo.txt", payload["text"].encode(), "text/plain")


def fail(attempt, payload):
    raise JobFailed(payload["code"], payload["message"], payload["transient"])


def slow(attempt, payload):
    ends = time.monotonic() + payload["seconds"]
    while time.monotonic() < ends:
        if attempt.stop.wait(0.05):
            raise JobFailed("stopped", f"told to stop: {attempt.reason}")


if __name__ == "__main__":
    main({"conformance.echo@1": echo, "conformance.fail@1": fail, "conformance.slow@1": slow})
