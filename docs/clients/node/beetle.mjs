// A client of Beetle's socket with Node's standard library alone; docs/clients/node.md explains it.

import net from "node:net";
import { Decoder, encode } from "./msgpack.mjs";

/** @typedef {import("./operations.d.ts").Operations} Operations */
/** @typedef {{owner_id?: string, agent_id?: string, conversation_id?: string}} Scope */
/** @typedef {{device_id: string, app_key: string} | {principal: string}} Auth */
/**
 * @typedef {object} Options
 * @property {string} [idempotencyKey] makes a write safe to repeat
 * @property {number} [deadlineMs] the daemon's deadline; left out: the profile's
 * @property {AbortSignal} [signal] cancels the call and closes the connection
 * @property {(event: any) => void} [onProgress] hears the progress of a long call
 * @property {(report: any) => void} [onReport] hears the report as soon as it is read
 * @property {Scope} [scope]
 */

/** An error that the daemon answered. */
export class BeetleError extends Error {
  name = "BeetleError";

  constructor({ key, message, hint, retryable, details }) {
    super(message);
    this.key = key;
    this.hint = hint;
    this.retryable = retryable;
    this.details = details;
  }
}

export class Client {
  #socket;
  #defaults;
  #decoder = new Decoder();
  #waiting = new Map();
  #progress = new Map();
  #events = new Map();
  #following = null;
  #lastId = 0;
  #ended = null;

  /**
   * Connect. `auth` and `scope` go with every call.
   * @param {string} [path]
   * @param {{auth?: Auth, scope?: Scope}} [defaults]
   * @returns {Promise<Client>}
   */
  static connect(path = process.env.BEETLE_SOCKET, { auth, scope } = {}) {
    return new Promise((resolve, reject) => {
      const socket = net.createConnection(path);
      socket.once("error", reject);
      socket.once("connect", () => resolve(new Client(socket, { auth, scope })));
    });
  }

  constructor(socket, defaults) {
    this.#socket = socket;
    this.#defaults = defaults;
    socket.on("data", (chunk) => this.#received(chunk));
    socket.on("error", (error) => this.#end(error));
    socket.on("close", () => this.#end(new Error("the connection to the daemon has ended")));
  }

  /**
   * Run one operation. Aborting `signal` closes the connection: the daemon cancels a read, and completes a write that
   * was sent.
   * @template {keyof Operations} K
   * @param {K} op
   * @param {Operations[K]["request"]} args
   * @param {Options} [options]
   * @returns {Promise<Operations[K]["report"]>}
   */
  async call(op, args = {}, { idempotencyKey, deadlineMs, signal, onProgress, onReport, scope } = {}) {
    signal?.throwIfAborted();
    if (onProgress) await (this.#following ??= this.call("subscribe", { topics: ["lifecycle"] }));
    if (this.#ended) throw this.#ended;
    const id = ++this.#lastId;
    const frame = { v: 1, id, op, args, ...this.#defaults };
    if (idempotencyKey !== undefined) frame.idempotency_key = idempotencyKey;
    if (deadlineMs !== undefined) frame.deadline_ms = deadlineMs;
    if (scope !== undefined) frame.scope = scope;
    const answer = new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject, onReport }));
    if (onProgress) this.#progress.set(id, onProgress);
    const abort = () => this.#socket.destroy(this.#end(signal.reason));
    signal?.addEventListener("abort", abort);
    this.#socket.write(encode(frame));
    try {
      return await answer;
    } finally {
      signal?.removeEventListener("abort", abort);
      this.#progress.delete(id);
    }
  }

  /** Events of these topics, until the loop over them ends. One with `event.dropped` says how many were lost. */
  async *subscribe(topics) {
    const queue = { frames: [], wake: () => {} };
    // At once: the first event can come in the same piece as this answer.
    const onReport = (report) => this.#events.set(report.sub, queue);
    const { sub } = await this.call("subscribe", { topics }, { onReport });
    try {
      for (;;) {
        while (queue.frames.length) yield queue.frames.shift();
        if (this.#ended) throw this.#ended;
        await new Promise((resolve) => (queue.wake = () => resolve(null)));
      }
    } finally {
      this.#events.delete(sub);
      if (!this.#ended) await this.call("unsubscribe", { sub });
    }
  }

  close() {
    this.#end(new Error("the client is closed"));
    this.#socket.destroy();
  }

  #received(chunk) {
    try {
      for (const frame of this.#decoder.push(chunk)) {
        if (this.#ended) return;
        this.#frame(frame);
      }
    } catch (error) {
      this.#end(error);
      this.#socket.destroy();
    }
  }

  #frame(frame) {
    if (frame.sub !== undefined) {
      const { event } = frame;
      if (event.event === "progress") return this.#progress.get(event.id)?.(event);
      const queue = this.#events.get(frame.sub);
      queue?.frames.push(frame);
      return queue?.wake();
    }
    // Without an id the daemon refuses the connection itself, and closes it.
    if (frame.id === null) return this.#end(new BeetleError(frame.error));
    const { resolve, reject, onReport } = this.#waiting.get(frame.id);
    this.#waiting.delete(frame.id);
    if (!frame.ok) return reject(new BeetleError(frame.error));
    onReport?.(frame.report);
    resolve(frame.report);
  }

  #end(reason) {
    this.#ended ??= reason;
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
    for (const { wake } of this.#events.values()) wake();
  }
}
