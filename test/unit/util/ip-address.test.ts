import assert from 'node:assert/strict';
import * as net from 'node:net';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { isInBlock, isIP } from '../../../src/util/ip-address.ts';

test('accepts the texts that Node.js accepts', () => {
  const piece = fc.constantFrom(
    '0',
    '01',
    '1',
    '255',
    '256',
    'f',
    'FFFF',
    '10000',
    '.',
    ':',
    '::',
    '%',
    '1.2.3.4',
    'é',
  );
  const texts = fc.array(piece, { maxLength: 18 }).map((pieces) => pieces.join(''));
  const addresses = fc.oneof(texts, fc.ipV4(), fc.ipV6(), fc.ipV4Extended());
  fc.assert(fc.property(addresses, (text) => isIP(text) === net.isIP(text)));
  for (const text of ['fe80::1%eth0', 'fe80::1%', 'fe80::1%a_b', '1.2.3.4%a', '::ffff:1.2.3.4']) {
    assert.equal(isIP(text), net.isIP(text), text);
  }
});

test('finds the addresses of a block', () => {
  const one = { address: fc.oneof(fc.ipV4(), fc.ipV6()), network: fc.oneof(fc.ipV4(), fc.ipV6()) };
  const nearby = fc.tuple(fc.constantFrom('10.1.2.', 'fd00::'), fc.nat(9), fc.nat(9));
  const pairs = fc.oneof(
    fc.record(one),
    nearby.map(([start, a, b]) => ({ address: `${start}${a}`, network: `${start}${b}` })),
  );
  fc.assert(
    fc.property(pairs, fc.nat(32), ({ address, network }, length) => {
      const prefix = net.isIPv4(network) ? length : 96 + length;
      const family = net.isIPv4(network) ? 'ipv4' : 'ipv6';
      const list = new net.BlockList();
      list.addSubnet(network, prefix, family);
      const isIn = net.isIP(address) === net.isIP(network) && list.check(address, family);
      assert.equal(isInBlock(address, network, prefix), isIn);
    }),
  );
});
