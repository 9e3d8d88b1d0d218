// Verifies an exported chain with nothing but docs/chain-format.md: `node verify_chain.js < export`, pages one a line.
'use strict';
const { createHash } = require('node:crypto');

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

const BODY = ['concepts', 'content', 'salt', 'tags', 'thought_signature'];
const FIELDS = ['agent_id', 'confidence', 'content_digest', 'id', 'importance', 'index', 'prev_hash', 'refs', 'relations',
  'role', 'schema_version', 'session_id', 'signing_key_id', 'thought_type', 'timestamp'];

const pages = require('node:fs').readFileSync(0, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
const thoughts = pages.flatMap((page) => page.thoughts);
const problems = [];
const gone = [];
let previous = '';
thoughts.forEach((thought, index) => {
  const problem = (what) => problems.push(`${index}: ${what}`);
  if (thought.index !== index) problem('index');
  if (thought.prev_hash !== previous) problem('prev_hash');
  if (sha256(only(thought, FIELDS)) !== thought.hash) problem('hash');
  if (thought.state !== 'live') gone.push(index);
  else if (sha256(only(thought, BODY)) !== thought.content_digest) problem('content_digest');
  previous = thought.hash;
});
const last = pages[pages.length - 1];
if (last.thought_count !== thoughts.length || (last.head_hash || '') !== previous) problems.push('head');
process.stdout.write(JSON.stringify({ thoughts: thoughts.length, gone, problems }));
