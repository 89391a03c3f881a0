"""The example with its virtues taken away: no heartbeats, nothing said twice, no heed of what it is told."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../../../../ops/examples/python"))
sys.dont_write_bytecode = True
import conformance_jobs
import worker

worker.Worker.beat = lambda self: None
worker.Worker.insist = lambda self, *args, until: self.call(*args)
jobs = {"echo": conformance_jobs.echo, "fail": conformance_jobs.fail, "slow": conformance_jobs.slow}
worker.main({f"conformance.{name}@1": job for name, job in jobs.items()})
