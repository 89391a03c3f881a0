import type { Socket } from "node:net";
import { AMQPBaseClient, AMQPError } from "@cloudamqp/amqp-client";
import { AMQPView } from "@cloudamqp/amqp-client/amqp-view";
import { messageOf } from "../../kernel/errors.ts";
import type { BrokerAddress } from "./dial.ts";

/** Every message that is under way has a buffer of this size. */
const FRAME_MAX = 32_768;
/** Least that the protocol allows; with less, messages would be cut into crumbs. */
const FRAME_MIN = 4_096;
/** Type, channel, size. */
const FRAME_HEAD = 7;
/** Beside the payload: the head, and an end of one byte. */
const FRAME_EXTRA = 8;
const METHOD_FRAME = 1;
const HEADER_FRAME = 2;
const BASIC = 60;
const CONFIRMATIONS = new Set([80, 120]);
/** A delivery, and the answer to a get. */
const CONSUMED = new Set([60, 71]);
/** Nothing as large comes back: only what was published and returned has a body. */
const LARGEST_BODY = 2 ** 22;
const MOST_UNSENT = 65_536;
/** Beyond twice what it was told, a broker has no more to say: what comes back is a message and why. */
const MOST_UNASKED = 2 ** 18;
const PROTOCOL = Buffer.from([0x41, 0x4d, 0x51, 0x50, 0, 0, 9, 1]);

/**
 * AMQP 0-9-1 on a socket that was dialled before. The other side is a stranger's: what it sends is cut into frames here, of
 * bounded size, and whatever cannot be read ends the connection and nothing else.
 */
export class AmqpSocket extends AMQPBaseClient {
  readonly #socket: Socket;
  #unread: Buffer[] = [];
  #waiting = 0;
  #wanted = FRAME_HEAD;
  #fault: Error | undefined;
  /** In bytes; what is said in answer to a frame, such as a heartbeat, does not count. */
  #said = 0;
  #heard = 0;
  #reading = false;

  constructor(socket: Socket, { room, user, password }: Pick<BrokerAddress, "room" | "user" | "password">) {
    // Without heartbeats: an idle connection is closed before long, and who waits on one waits so long and no longer.
    super(room, user, password, "punctual", undefined, FRAME_MAX, 0, 0, null);
    this.#socket = socket;
    this.onerror = () => undefined;
  }

  override connect(): Promise<AMQPBaseClient> {
    const opened = new Promise<AMQPBaseClient>((resolve, reject) => {
      this.connectPromise = [resolve, reject];
    });
    this.#socket
      .on("data", (bytes: Buffer) => this.#read(bytes))
      .on("error", (error) => {
        this.#fault ??= error;
      })
      .on("end", () => this.#socket.destroy())
      .on("close", () => this.#end());
    if (this.#socket.destroyed) this.#end();
    else this.#socket.write(PROTOCOL);
    return opened.then((client) => {
      // No limit said is no limit kept: buffers are made by this number.
      if (this.frameMax === 0) this.frameMax = FRAME_MAX;
      if (this.frameMax >= FRAME_MIN) return client;
      const fault = new AMQPError(
        `the broker allows frames of ${this.frameMax} bytes, fewer than the protocol does`,
        this,
      );
      this.#socket.destroy(fault);
      throw fault;
    });
  }

  get alive(): boolean {
    return !this.closed && !this.#socket.destroyed;
  }

  /** Never rejects: that a connection is over is told once, by its end. The bytes are copied, since their buffer is used again. */
  override send(bytes: Uint8Array): Promise<void> {
    if (!this.#reading) this.#said += bytes.length;
    if (this.#socket.writable) this.#socket.write(Buffer.from(bytes));
    return Promise.resolve();
  }

  override closeSocket(): void {
    this.closed = true;
    // Who has not taken what was said before does not take a goodbye.
    if (this.#socket.writableLength > MOST_UNSENT) this.#socket.destroy();
    else this.#socket.destroySoon();
  }

  /** Says goodbye and does not wait for an answer. */
  hangUp(): void {
    if (this.alive) this.close().catch(() => undefined);
    this.closeSocket();
  }

  #read(bytes: Buffer): void {
    this.#unread.push(bytes);
    this.#waiting += bytes.length;
    this.#heard += bytes.length;
    this.#reading = true;
    try {
      if (this.#heard > 2 * this.#said + MOST_UNASKED) throw new Error("more than anybody has asked for");
      for (let frame = this.#nextFrame(); frame !== undefined; frame = this.#nextFrame()) {
        // In a memory of its own: a length in it that is a lie leads nowhere.
        this.parseFrames(new AMQPView(new Uint8Array(frame).buffer));
      }
    } catch (error) {
      this.#socket.destroy(new AMQPError(`the broker sends what is no AMQP 0-9-1: ${messageOf(error)}`, this));
    } finally {
      this.#reading = false;
    }
  }

  #nextFrame(): Buffer | undefined {
    // Put together when there is enough of it: the other side may send byte by byte.
    if (this.#waiting < this.#wanted) return undefined;
    const unread = this.#unread.length === 1 ? this.#unread[0]! : Buffer.concat(this.#unread);
    this.#unread = [unread];
    if (unread[0] === PROTOCOL[0]) throw new Error("it speaks another version");
    const size = unread.readUInt32BE(3) + FRAME_EXTRA;
    if (size > FRAME_MAX + FRAME_EXTRA) throw new Error(`a frame of ${size} bytes`);
    this.#wanted = size;
    if (unread.length < size) return undefined;
    if (unread[0] === HEADER_FRAME && (size < 19 || unread.readBigUInt64BE(11) > LARGEST_BODY)) {
      throw new Error("a message that is too large");
    }
    checkMethod(unread.subarray(0, size));
    this.#unread = [unread.subarray(size)];
    this.#waiting -= size;
    this.#wanted = FRAME_HEAD;
    return unread.subarray(0, size);
  }

  #end(): void {
    const fault = new AMQPError(
      `the connection was closed${this.#fault === undefined ? "" : `: ${this.#fault.message}`}`,
      this,
    );
    this.closed = true;
    for (const channel of this.channels) channel?.setClosed(fault);
    const [, reject] = this.connectPromise ?? [];
    delete this.connectPromise;
    reject?.(fault);
  }
}

/** Nothing is consumed here; and the client writes to the console of numbers that it cannot count to. */
function checkMethod(frame: Buffer): void {
  if (frame[0] !== METHOD_FRAME || frame.length < 19 || frame.readUInt16BE(7) !== BASIC) return;
  const method = frame.readUInt16BE(9);
  if (CONSUMED.has(method)) throw new Error("a message that nobody consumes");
  if (CONFIRMATIONS.has(method) && frame.readBigUInt64BE(11) > Number.MAX_SAFE_INTEGER) {
    throw new Error("a confirmation of nothing");
  }
}
