// Makes vectors.json: captured turns and their signatures by node's crypto. `node tests/capture/vectors.mjs > tests/capture/vectors.json`
import { createPrivateKey, createPublicKey, sign } from "node:crypto";

const PKCS8 = Buffer.from("302e020100300506032b657004220420", "hex");
const key = (seed) => createPrivateKey({ key: Buffer.concat([PKCS8, Buffer.alloc(32, seed)]), format: "der", type: "pkcs8" });
const raw = (secret) => createPublicKey(secret).export({ format: "der", type: "spki" }).subarray(-32);
const turns = [
  ["s1", 0, "user", "What is Rust?"],
  ["s1", 1, "assistant", ""],
  ["s1", "9223372036854775807", "system", "zero \u0000 byte, lone \r, trailing  \n"],
  ["Sitzung/ü 1", 42, "tool_use", "日本語 e\u0301 é \ufeff 👩‍👩‍👧"],
  ["s1", 2, "tool_result", "x".repeat(1000)],
  ["s1", 3, "other", "0"],
];
const out = turns.map(([session, index, role, content], n) => {
  const secret = key(n < 3 ? 1 : 2);
  const zero = Buffer.alloc(1);
  const parts = [session, String(index), role, content].map((part) => Buffer.from(part, "utf8"));
  const data = Buffer.concat(parts.flatMap((part, at) => (at ? [zero, part] : [part])));
  return {
    host_session_id: session, host_turn_index: String(index), role, content,
    host_pubkey_b64: raw(secret).toString("base64"),
    host_signature_b64: sign(null, data, secret).toString("base64"),
  };
});
const padded = Buffer.from("s1\u000000\u0000user\u0000What is Rust?", "utf8");
console.log(JSON.stringify({ turns: out, index_with_a_leading_zero: sign(null, padded, key(1)).toString("base64") }, null, 2));
