// Verifies an uploaded version with nothing but docs/skill-registry.md: `node verify_skill.js VERSION < content`, where VERSION is
// the version's object as JSON. Says whether its hash and its signature hold.
'use strict';
const { createHash, createPublicKey, verify } = require('node:crypto');
const version = JSON.parse(process.argv[2]);
const content = require('node:fs').readFileSync(0);
const SPKI = Buffer.from('302a300506032b6570032100', 'hex'); // what stands before an Ed25519 key in DER
const key = createPublicKey({ key: Buffer.concat([SPKI, Buffer.from(version.public_key_bytes)]), format: 'der', type: 'spki' });
process.stdout.write(JSON.stringify({
  hash: createHash('sha256').update(content).digest('hex') === version.content_hash,
  signature: verify(null, content, key, Buffer.from(version.skill_signature)),
}));
