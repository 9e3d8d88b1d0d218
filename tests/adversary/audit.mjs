// Audits an exported event log with Node alone, as docs/audit.md describes: node audit.mjs EXPORT [DEVICE [RECEIPTS]]
import { createHash, createPublicKey, verify } from "node:crypto";
import { readFileSync } from "node:fs";

const refuse = (why) => { console.log(`refused: ${why}`); process.exit(1); };
const sha256 = (...parts) => parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest();
const decode = (text) => {
  const data = Buffer.from(text, "base64url");
  if (data.toString("base64url") !== text) refuse(`not base64url: ${text.slice(0, 20)}`);
  return data;
};

// The MessagePack of a row: an array of eight integers, texts and nils.
function unpack(data) {
  let at = 0;
  const number = (bytes, signed) => {
    const found = bytes === 8 ? (signed ? data.readBigInt64BE(at) : data.readBigUInt64BE(at))
      : BigInt(signed ? data.readIntBE(at, bytes) : data.readUIntBE(at, bytes));
    at += bytes;
    return found;
  };
  const value = () => {
    const mark = data[at++];
    if (mark <= 0x7f) return BigInt(mark);
    if (mark >= 0xe0) return BigInt(mark - 0x100);
    if (mark === 0xc0) return null;
    if (mark >= 0xcc && mark <= 0xcf) return number(1 << (mark - 0xcc), false);
    if (mark >= 0xd0 && mark <= 0xd3) return number(1 << (mark - 0xd0), true);
    let length;
    if (mark >= 0xa0 && mark <= 0xbf) length = mark & 0x1f;
    else if (mark >= 0xd9 && mark <= 0xdb) length = Number(number(1 << (mark - 0xd9), false));
    else refuse(`an encoding holds what a row does not: ${mark}`);
    at += length;
    return data.subarray(at - length, at).toString("utf8");
  };
  if (data[at++] !== 0x98) refuse("an encoding is no array of eight");
  const row = Array.from({ length: 8 }, value);
  if (at !== data.length) refuse("an encoding has bytes behind its end");
  return row;
}

// MARK.BODY.SIGNATURE: its body, if the key in it has signed it and is the device's.
function signed(text, mark, device) {
  const parts = text.trim().split(".");
  if (parts.length !== 3 || parts[0] !== mark) refuse(`no ${mark}: ${text.slice(0, 30)}`);
  const body = JSON.parse(decode(parts[1]).toString("utf8"));
  const key = decode(body.key ?? "");
  if (key.length !== 32) refuse(`${mark} is not signed`);
  // An Ed25519 public key as DER: a fixed prefix and its 32 bytes.
  const der = Buffer.concat([Buffer.from("302a300506032b6570032100", "hex"), key]);
  const known = createPublicKey({ key: der, format: "der", type: "spki" });
  const said = Buffer.from(`${parts[0]}.${parts[1]}`);
  if (!verify(null, said, known, decode(parts[2]))) refuse(`the signature of a ${mark} does not hold`);
  const fingerprint = sha256(key).toString("hex").slice(0, 16);
  if (body.device !== fingerprint) refuse(`a ${mark} names another device than its key's`);
  if (device && fingerprint !== device) refuse(`a ${mark} was signed by ${fingerprint}, not by ${device}`);
  return body;
}

const [exported, device, receipts] = process.argv.slice(2);
const pages = readFileSync(exported, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line));
const links = pages.flatMap((page) => page.chain);
let previous = Buffer.alloc(32);
let closed = 0;
links.forEach((link, index) => {
  if (link.seq !== index + 1) refuse(`row ${index + 1} is missing`);
  const hash = Buffer.from(link.hash, "hex");
  if (link.encoding === null) closed += 1;
  else {
    const encoding = decode(link.encoding);
    if (!sha256(previous, encoding).equals(hash)) refuse(`row ${link.seq} does not follow from the one before`);
    if (unpack(encoding)[0] !== BigInt(link.seq)) refuse(`row ${link.seq} says that it is another`);
  }
  previous = hash;
});

const text = pages[pages.length - 1].signed_head;
if (!text) refuse("the log's head is not signed");
const head = signed(text, "beetle-head-1", device);
if (head.rows > links.length) refuse(`row ${head.rows} was signed as the last, and the log ends at row ${links.length}`);
if (links[head.rows - 1].hash !== head.digest) refuse(`row ${head.rows} is not the one that was signed`);

const lines = receipts ? readFileSync(receipts, "utf8").split("\n").filter(Boolean) : [];
for (const line of lines) {
  const body = signed(line, "beetle-receipt-1", head.device);
  if (body.store !== head.store) refuse("a receipt is of another store");
  const link = links[body.event - 1];
  if (!link) refuse(`row ${body.event} of a receipt is missing`);
  if (link.hash !== body.head) refuse(`row ${body.event} is not the one of its receipt`);
  if (link.encoding !== null) {
    const [, , , , , operation, principal] = unpack(decode(link.encoding));
    const named = principal.startsWith("embedded:") ? "embedded" : principal;
    if (operation !== body.operation || named !== body.principal) refuse(`a receipt differs from row ${body.event}`);
  }
}
console.log(`${links.length} rows, ${closed} closed, ${links.length - head.rows} unsigned, ${lines.length} receipts`);
