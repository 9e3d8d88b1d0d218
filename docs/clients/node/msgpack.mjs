// MessagePack as the socket uses it: no extension but times, which are sent as text.

export function encode(value) {
  const parts = [];
  write(value, parts);
  return Buffer.concat(parts);
}

function head(tag, size, value, parts) {
  const bytes = Buffer.alloc(1 + size);
  bytes[0] = tag;
  if (size > 4) bytes.writeBigInt64BE(BigInt(value), 1);
  else if (size > 0) bytes.writeUIntBE(value, 1, size);
  parts.push(bytes);
}

// The shortest of the heads for 1, 2 and 4 bytes of length; `few` is the tag that holds a length below `limit` itself.
function sized(few, limit, tags, length, parts) {
  if (length < limit) return head(few | length, 0, 0, parts);
  const wide = length > 0xffff ? 2 : length > 0xff || tags[0] === null ? 1 : 0;
  head(tags[wide], 1 << wide, length, parts);
}

function write(value, parts) {
  if (value === null || value === undefined) head(0xc0, 0, 0, parts);
  else if (typeof value === "boolean") head(value ? 0xc3 : 0xc2, 0, 0, parts);
  else if (typeof value === "bigint" || Number.isSafeInteger(value)) {
    if (value >= 0 && value < 128) head(Number(value), 0, 0, parts);
    else head(0xd3, 8, value, parts);
  } else if (typeof value === "number") {
    const bytes = Buffer.alloc(9, 0xcb);
    bytes.writeDoubleBE(value, 1);
    parts.push(bytes);
  } else if (typeof value === "string") {
    const bytes = Buffer.from(value);
    sized(0xa0, 32, [0xd9, 0xda, 0xdb], bytes.length, parts);
    parts.push(bytes);
  } else if (value instanceof Uint8Array) {
    sized(0, 0, [0xc4, 0xc5, 0xc6], value.length, parts);
    parts.push(value);
  } else if (Array.isArray(value)) {
    sized(0x90, 16, [null, 0xdc, 0xdd], value.length, parts);
    for (const each of value) write(each, parts);
  } else {
    const entries = Object.entries(value).filter(([, each]) => each !== undefined);
    sized(0x80, 16, [null, 0xde, 0xdf], entries.length, parts);
    for (const [key, each] of entries) {
      write(key, parts);
      write(each, parts);
    }
  }
}

// What stands at `at`: its kind, the bytes of its head, and its length in bytes or items. Null: the head is not whole.
function look(bytes, at, end) {
  const tag = bytes[at];
  if (tag < 0x80 || tag >= 0xe0) return ["number", 1, 0];
  if (tag < 0x90) return ["map", 1, tag & 15];
  if (tag < 0xa0) return ["array", 1, tag & 15];
  if (tag < 0xc0) return ["text", 1, tag & 31];
  const numbers = { 0xca: 4, 0xcb: 8, 0xcc: 1, 0xcd: 2, 0xce: 4, 0xcf: 8, 0xd0: 1, 0xd1: 2, 0xd2: 4, 0xd3: 8 };
  if (tag in numbers) return ["number", 1, numbers[tag]];
  const lengths = {
    0xc4: ["bin", 1], 0xc5: ["bin", 2], 0xc6: ["bin", 4], 0xd9: ["text", 1], 0xda: ["text", 2], 0xdb: ["text", 4],
    0xdc: ["array", 2], 0xdd: ["array", 4], 0xde: ["map", 2], 0xdf: ["map", 4],
  };
  if (tag in lengths) {
    const [kind, size] = lengths[tag];
    return at + 1 + size > end ? null : [kind, 1 + size, bytes.readUIntBE(at + 1, size)];
  }
  if (tag === 0xc0 || tag === 0xc2 || tag === 0xc3) return ["constant", 1, 0];
  throw new Error(`an answer holds the MessagePack tag ${tag}`);
}

function number(bytes, at) {
  const tag = bytes[at];
  if (tag < 0x80) return tag;
  if (tag >= 0xe0) return tag - 0x100;
  if (tag === 0xca) return bytes.readFloatBE(at + 1);
  if (tag === 0xcb) return bytes.readDoubleBE(at + 1);
  if (tag < 0xcf) return bytes.readUIntBE(at + 1, 1 << (tag - 0xcc));
  if (tag < 0xd3 && tag > 0xcf) return bytes.readIntBE(at + 1, 1 << (tag - 0xd0));
  const wide = tag === 0xcf ? bytes.readBigUInt64BE(at + 1) : bytes.readBigInt64BE(at + 1);
  return Number.isSafeInteger(Number(wide)) ? Number(wide) : wide;
}

function read(bytes, from) {
  const [kind, size, length] = look(bytes, from.at, bytes.length);
  const at = from.at;
  const body = at + size;
  from.at = kind === "map" || kind === "array" ? body : body + length;
  if (kind === "number") return number(bytes, at);
  if (kind === "constant") return bytes[at] === 0xc0 ? null : bytes[at] === 0xc3;
  if (kind === "text") return bytes.toString("utf8", body, body + length);
  if (kind === "bin") return Buffer.from(bytes.subarray(body, body + length));
  if (kind === "array") return Array.from({ length }, () => read(bytes, from));
  return Object.fromEntries(Array.from({ length }, () => [read(bytes, from), read(bytes, from)]));
}

// Splits a stream into values. Each byte is looked at once, however small the pieces of a large frame are.
export class Decoder {
  #bytes = Buffer.alloc(65536);
  #end = 0;
  #at = 0;
  #left = 1;

  *push(chunk) {
    if (this.#end + chunk.length > this.#bytes.length) {
      const larger = Buffer.alloc(2 * (this.#end + chunk.length));
      this.#bytes.copy(larger, 0, 0, this.#end);
      this.#bytes = larger;
    }
    chunk.copy(this.#bytes, this.#end);
    this.#end += chunk.length;
    while (this.#whole()) {
      const value = read(this.#bytes.subarray(0, this.#at), { at: 0 });
      this.#bytes.copy(this.#bytes, 0, this.#at, this.#end);
      this.#end -= this.#at;
      this.#at = 0;
      this.#left = 1;
      yield value;
    }
  }

  #whole() {
    while (this.#left > 0 && this.#at < this.#end) {
      const found = look(this.#bytes, this.#at, this.#end);
      if (found === null) return false;
      const [kind, size, length] = found;
      const items = kind === "map" ? 2 * length : kind === "array" ? length : 0;
      this.#left += items - 1;
      this.#at += size + (kind === "map" || kind === "array" ? 0 : length);
    }
    return this.#left === 0 && this.#at <= this.#end;
  }
}
