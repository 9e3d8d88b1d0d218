// A client of the daemon that shares no code with it: WIRE.md, `@msgpack/msgpack` and a socket.
// Usage: node client.mjs SOCKET; prints one JSON object.

import net from "node:net";
import { decodeMultiStream, encode } from "@msgpack/msgpack";

class Client {
  constructor(path) {
    this.socket = net.createConnection(path);
    this.waiting = new Map();
    this.events = [];
    this.listener = null;
    this.lastId = 0;
    this.reading = this.read();
  }

  async read() {
    for await (const frame of decodeMultiStream(this.socket)) {
      if (frame.sub !== undefined && frame.id === undefined) {
        this.events.push(frame);
        this.listener?.();
      } else {
        this.waiting.get(frame.id)(frame);
        this.waiting.delete(frame.id);
      }
    }
  }

  frame(op, args, more = {}) {
    return { v: 1, id: `n${++this.lastId}`, op, args, ...more };
  }

  answer(frame) {
    return new Promise((resolve) => this.waiting.set(frame.id, resolve));
  }

  ask(op, args = {}, more = {}) {
    const frame = this.frame(op, args, more);
    const answer = this.answer(frame);
    this.socket.write(encode(frame));
    return answer;
  }

  pipeline(...frames) {
    const answers = frames.map((frame) => this.answer(frame));
    this.socket.write(Buffer.concat(frames.map((frame) => encode(frame))));
    return Promise.all(answers);
  }

  async event() {
    while (this.events.length === 0) await new Promise((resolve) => (this.listener = resolve));
    return this.events.shift();
  }

  async close() {
    this.socket.end();
    await this.reading;
  }
}

const turn = (id, content) => ({
  turn_id: id,
  at: "2026-01-02T03:04:05Z",
  messages: [{ message_id: `${id}-m`, role: "user", content, actor: { speaker: "Zoë" } }],
});
const commit = (id, content) => ({ conversation: { conversation_id: "node" }, turns: [turn(id, content)] });
const skill = {
  kind: "procedural",
  source: "manual",
  writes: [
    {
      name: "brew-tea",
      topic: "tea",
      title: "Brewing tea",
      summary: "how tea is brewed here",
      content: "Warm the samovar. 茶 🍵",
      citations: ["evidence:local/node/t1"],
    },
  ],
};

const client = new Client(process.argv[2]);
const told = {};
told.hello = await client.ask("hello");

const following = await client.ask("subscribe", { topics: ["transcript"] });
told.subscribed = following;
told.committed = await client.ask("transcript.commit", commit("t1", "Grandmother keeps the samovar in the attic 🫖"), {
  idempotency_key: "node-1",
});
told.event = await client.event();
told.repeated = await client.ask("transcript.commit", commit("t1", "Grandmother keeps the samovar in the attic 🫖"), {
  idempotency_key: "node-1",
});
told.skill = await client.ask("memory.write", skill);
told.recalled = await client.ask("memory.recall", { query: "where is the samovar", limit: 10 });

told.conflict = await client.ask("transcript.commit", commit("t1", "another text"));
told.invalid = await client.ask("memory.recall", { query: "samovar", limit: 0 });
told.unknown = await client.ask("memory.recal");
told.pipelined = await client.pipeline(
  client.frame("transcript.conversations", {}),
  client.frame("skill.detail", { name: "brew-tea" }),
);
told.unsubscribed = await client.ask("unsubscribe", { sub: following.report.sub });
await client.close();
told.leftover = { events: client.events.length, waiting: client.waiting.size };
console.log(JSON.stringify(told));
