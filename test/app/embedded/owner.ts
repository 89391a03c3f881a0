// A program that owns embedded servers, says so, and waits to be killed (see lifetime.test.ts).
import { startPostgres } from "../../../src/app/embedded/postgres.ts";
import { startRedis } from "../../../src/app/embedded/redis.ts";

const [dataDirectory = "", redisBinary = ""] = process.argv.slice(2);
const log = () => undefined;
const postgres = await startPostgres({ dataDirectory, lifetime: "discarded", settings: { fsync: "off" }, log });
const redis = redisBinary ? await startRedis({ binary: redisBinary, log }) : undefined;
console.log(JSON.stringify([postgres.pid, redis?.pid].filter(Boolean)));
