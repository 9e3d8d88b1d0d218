// Verifies an exported chain with nothing but docs/chain-format.md: `node verify_chain.js [AGENTS] < export`, pages one a line.
// AGENTS is a file with the pages of the chain's agent registry, by whose keys signatures are verified.
'use strict';
const { createHash, createPublicKey, verify } = require('node:crypto');
const { readFileSync } = require('node:fs');

// RFC 8785: keys sorted by UTF-16 code units, strings and numbers as ECMAScript writes them.
function canonical(value) {
  if (Array.isArray(value)) return '[' + value.map(canonical).join(',') + ']';
  if (value !== null && typeof value === 'object') {
    return '{' + Object.keys(value).sort().map((key) => JSON.stringify(key) + ':' + canonical(value[key])).join(',') + '}';
  }
  return JSON.stringify(value);
}
const sha256 = (value) => createHash('sha256').update(canonical(value), 'utf8').digest('hex');
const only = (value, names) => Object.fromEntries(names.map((name) => [name, value[name] === undefined ? null : value[name]]));
const lines = (text) => text.split('\n').filter(Boolean).map((line) => JSON.parse(line));

const BODY = ['concepts', 'content', 'salt', 'tags', 'thought_signature'];
const FIELDS = ['agent_id', 'confidence', 'content_digest', 'id', 'importance', 'index', 'prev_hash', 'refs', 'relations',
  'role', 'schema_version', 'session_id', 'signing_key_id', 'thought_type', 'timestamp'];
const SIGNED = ['agent_id', 'concepts', 'confidence', 'content', 'importance', 'refs', 'relations', 'role', 'schema_version',
  'session_id', 'tags', 'thought_type'];
const SPKI = Buffer.from('302a300506032b6570032100', 'hex'); // what stands before an Ed25519 key in DER

const agents = process.argv[2] ? lines(readFileSync(process.argv[2], 'utf8')).flatMap((page) => page.agents) : [];
function isSigned(thought) {
  const agent = agents.find((each) => each.agent_id === thought.agent_id);
  const key = agent && agent.public_keys.find((each) => each.key_id === thought.signing_key_id);
  if (!key || (key.revoked_at && key.revoked_at <= thought.timestamp)) return false;
  const raw = Buffer.concat([SPKI, Buffer.from(key.public_key_bytes)]);
  const publicKey = createPublicKey({ key: raw, format: 'der', type: 'spki' });
  return verify(null, Buffer.from(canonical(only(thought, SIGNED)), 'utf8'), publicKey, Buffer.from(thought.thought_signature));
}

const pages = lines(readFileSync(0, 'utf8'));
const thoughts = pages.flatMap((page) => page.thoughts);
const problems = [];
const gone = [];
const signed = [];
let previous = '';
thoughts.forEach((thought, index) => {
  const problem = (what) => problems.push(`${index}: ${what}`);
  if (thought.index !== index) problem('index');
  if (thought.prev_hash !== previous) problem('prev_hash');
  if (sha256(only(thought, FIELDS)) !== thought.hash) problem('hash');
  if (thought.state !== 'live') gone.push(index);
  else if (sha256(only(thought, BODY)) !== thought.content_digest) problem('content_digest');
  if (thought.thought_signature) {
    if (isSigned(thought)) signed.push(index);
    else problem('thought_signature');
  }
  previous = thought.hash;
});
const last = pages[pages.length - 1];
if (last.thought_count !== thoughts.length || (last.head_hash || '') !== previous) problems.push('head');
process.stdout.write(JSON.stringify({ thoughts: thoughts.length, gone, signed, problems }));
