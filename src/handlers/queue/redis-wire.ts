import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { createAnswerReader } from "./redis-answers.ts";

/**
 * Between a socket that was dialled and the client that speaks Redis on it. The other side is a stranger's, and the client
 * trusts what it is told: it makes room for whatever is announced, and throws where nobody can catch at answers that it has
 * no question for. So only whole answers get through, of bounded size, and one for each command. Anything else is the end
 * of the connection, and nothing else.
 */
export class RedisWire extends Duplex {
  readonly #socket: Socket;
  readonly #read: (bytes: Buffer) => void;
  #unanswered = 0;

  constructor(socket: Socket) {
    super({ allowHalfOpen: false });
    this.#socket = socket;
    this.#read = createAnswerReader((answer) => {
      if (this.#unanswered === 0) throw new Error("it says what nobody has asked");
      this.#unanswered--;
      if (!this.push(answer)) socket.pause();
    });
    socket.on("error", (error) => this.destroy(error)).on("close", () => this.destroy());
    if (socket.destroyed) this.destroy();
  }

  /** Nothing is listened to before somebody wants to: what was said to nobody would be lost. */
  override _read(): void {
    if (this.#socket.listenerCount("data") > 0) return void this.#socket.resume();
    this.#socket.on("data", (bytes: Buffer) => this.#take(bytes)).on("end", () => this.push(null));
  }

  #take(bytes: Buffer): void {
    if (this.destroyed) return;
    try {
      this.#read(bytes);
    } catch (error) {
      this.destroy(error as Error);
    }
  }

  /** The client writes each command at once, and in one piece; pipelines, which it would not, are not used. */
  override _write(command: Buffer, _encoding: BufferEncoding, done: (error?: Error | null) => void): void {
    this.#unanswered++;
    this.#socket.write(command, done);
  }

  override _final(done: () => void): void {
    this.#socket.end();
    done();
  }

  override _destroy(error: Error | null, done: (error?: Error | null) => void): void {
    this.#socket.destroy();
    done(error);
  }

  /** As the client asks of sockets. */
  setKeepAlive(enable: boolean, initialDelay: number): this {
    this.#socket.setKeepAlive(enable, initialDelay);
    return this;
  }
}
