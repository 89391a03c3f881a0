"""A remote worker for Punctual, with nothing but Python's standard library (3.9 or newer): docs/remote-workers.md.

    PUNCTUAL_URL=https://punctual.example.com PUNCTUAL_KEY=pk_... python3 worker.py
"""
import http.client, json, os, random, signal, socket, threading, time, uuid
import urllib.error, urllib.parse, urllib.request

NO_ANSWER = (OSError, ValueError, http.client.HTTPException)  # none, half of one, or "later"


class JobFailed(Exception):
    """What a job raises to say what kind of failure it is; anything else is transient."""
    def __init__(self, code, message, transient=True):
        super().__init__(message)
        self.body = {"code": code, "message": message, "transient": transient}


class Refused(Exception): "The API's answer is final."


class Attempt:
    """What a job is given. `stop` is set when it should end; `reason` says why."""
    def __init__(self, worker, grant, sent):
        self.worker, self.job, self.payload = worker, "{name}@{version}".format(**grant["job"]), grant["payload"]
        self.ref = {key: grant[key] for key in ("runId", "attempt", "fence")}
        self.stop, self.reason = threading.Event(), None
        self.trusted_until, self.deadline = sent + worker.trust_s, sent + grant["timeoutMs"] / 1000

    def end(self, reason):
        self.reason = self.reason or reason
        self.stop.set()

    def output(self, name, data, media_type="application/octet-stream"):
        query = urllib.parse.urlencode({**self.ref, "worker": self.worker.name, "name": name})
        return self.worker.insist("PUT", "stage?" + query, data, media_type, until=self.deadline)


class Worker:
    def __init__(self, url, key, jobs, concurrency=2, grace_s=25):
        self.url, self.key, self.jobs, self.concurrency, self.grace_s = url.rstrip("/"), key, jobs, concurrency, grace_s
        self.name = f"py-{''.join(filter(str.isalnum, ascii(socket.gethostname())))[:60]}-{uuid.uuid4().hex[:8]}"
        self.held, self.stopping = {}, threading.Event()  # attempts by their fence
        self.heartbeat_s, self.trust_s = 1.0, 55.0  # until the first answer tells

    def call(self, method, path, body, media_type="application/json", timeout=60):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        about = {"authorization": "Bearer " + self.key, "content-type": media_type}
        request = urllib.request.Request(f"{self.url}/v1/worker/{path}", data, about, method=method)
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            problem = json.loads(error.read() or b"{}")
            if problem.get("retryable", error.code >= 500):
                raise
            raise Refused(problem.get("detail", error.code)) from None

    def insist(self, *args, until):
        """The same words have the same effect once: they are said until there is an answer."""
        for tries in range(1000):
            try:
                return self.call(*args)
            except NO_ANSWER:
                if time.monotonic() >= until:
                    raise
            time.sleep(random.uniform(0, min(10, 0.25 * 2 ** min(tries, 6))))

    def run(self):
        threading.Thread(target=self.beat, daemon=True).start()
        while not self.stopping.is_set():
            slots = self.concurrency - len(self.held)
            try:
                self.take_work(slots) if slots > 0 else self.stopping.wait(0.1)
            except (*NO_ANSWER, Refused) as error:
                print("no work could be asked for:", error, flush=True)
                self.stopping.wait(random.uniform(0.5, 5))
        ends = time.monotonic() + self.grace_s
        while self.held and time.monotonic() < ends + 5:
            for attempt in list(self.held.values()) if time.monotonic() >= ends else ():
                attempt.end("shutdown")  # what has stopped by then is given back
            time.sleep(0.05)

    def take_work(self, slots):
        about = {"worker": self.name, "slots": slots}
        poll = {**about, "jobs": list(self.jobs), "concurrency": self.concurrency, "waitMs": 5000}
        told, sent = self.call("POST", "poll", poll), time.monotonic()
        terms = told["terms"]
        self.heartbeat_s, self.trust_s = terms["heartbeatMs"] / 1000, (terms["ttlMs"] - terms["marginMs"]) / 1000
        if not told["hints"] or self.stopping.is_set():
            return
        claim = {**about, "claimId": str(uuid.uuid4()), "hints": told["hints"]}
        for grant in self.insist("POST", "claim", claim, until=sent + self.trust_s)["grants"]:
            attempt = self.held[grant["fence"]] = Attempt(self, grant, sent)
            threading.Thread(target=self.work, args=(attempt,), daemon=True).start()

    def work(self, attempt):
        about = {**attempt.ref, "worker": self.name}
        try:
            output = self.jobs[attempt.job](attempt, attempt.payload)
            keep = None if output is None else {key: output[key] for key in ("objectId", "sha256")}
            verb, body = "complete", {**about, "output": keep}
        except BaseException as error:  # sys.exit() ends the attempt, too: nobody else would
            failed = error if isinstance(error, JobFailed) else JobFailed("job-failed", repr(error))
            verb, body = ("release", about) if attempt.reason == "shutdown" else ("fail", {**about, **failed.body})
        try:
            if attempt.reason != "stale-fence":
                self.insist("POST", verb, body, until=attempt.deadline + 60)
        except (*NO_ANSWER, Refused) as error:
            print(attempt.ref, "could not be reported:", error, flush=True)
        del self.held[attempt.ref["fence"]]

    def beat(self):
        while True:
            time.sleep(self.heartbeat_s)
            attempts, sent, beats = list(self.held.values()), time.monotonic(), []
            try:
                body = {"worker": self.name, "attempts": [attempt.ref for attempt in attempts]}
                beats = self.call("POST", "heartbeat", body, timeout=self.heartbeat_s)["attempts"] if attempts else []
            except (*NO_ANSWER, Refused) as error:
                print("a heartbeat got no answer:", error, flush=True)
            for attempt, beat in zip(attempts, beats):
                if beat["outcome"] == "renewed":
                    attempt.trusted_until = sent + self.trust_s
                elif beat["outcome"] != "busy":
                    attempt.end("deadline" if beat["outcome"] == "deadline" else "stale-fence")
                if beat["cancelRequested"]:
                    attempt.end("canceled")
            for attempt in attempts:
                if time.monotonic() >= min(attempt.trusted_until, attempt.deadline):
                    attempt.end("lease-doubtful")


def main(jobs):
    url, key = os.environ.get("PUNCTUAL_URL"), os.environ.get("PUNCTUAL_KEY")
    if not (url and key):
        raise SystemExit("PUNCTUAL_URL and PUNCTUAL_KEY are needed: where the API is, and a key of the role worker")
    worker = Worker(url, key, jobs)
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: worker.stopping.set())
    worker.run()


def monthly(attempt, payload):
    lines = [f"{payload.get('year', 2026)}-{month:02},{month * 100}" for month in range(1, 13)]
    return attempt.output("monthly.csv", "\n".join(lines).encode(), "text/csv")


if __name__ == "__main__":  # your own jobs stand here; long ones look at attempt.stop
    main({"report.monthly@1": monthly})
