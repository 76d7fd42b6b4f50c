import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proxyFor } from '../../../../src/client/kube-config/proxy-environment.ts';

const SERVERS = [
  'https://x.example.com:6443',
  'https://example.com',
  'https://x.com',
  'https://10.1.2.3:6443',
  'https://10.1.2.3',
  'https://[fd00::1]:6443',
  'https://xn--bcher-kva.de',
  'https://localhost:1',
  'https://127.3.4.5',
  'https://[::1]:6443',
  'https://[::ffff:127.0.0.1]',
  'https://[::ffff:10.1.2.3]:6443',
];

/**
 * NO_PROXY, and for each server whether golang.org/x/net/http/httpproxy v0.58.0 uses the proxy (p) or
 * not (-).
 */
const VECTORS: readonly (readonly [noProxy: string, answers: string])[] = [
  ['*', '------------'],
  ['a, example.com', '--ppppp----p'],
  ['example.com', '--ppppp----p'],
  ['.example.com', '-pppppp----p'],
  ['*.example.com', '-pppppp----p'],
  ['x.example.com:6443', '-pppppp----p'],
  ['x.example.com:443', 'ppppppp----p'],
  ['x.example.com:', '-pppppp----p'],
  ['X.EXAMPLE.COM', '-pppppp----p'],
  ['ample.com', 'ppppppp----p'],
  ['.x.example.com', 'ppppppp----p'],
  ['com', '---pppp----p'],
  ['*.com.', 'ppppppp----p'],
  ['10.0.0.0/8', 'ppp--pp-----'],
  ['10.1.2.3', 'ppp--pp-----'],
  ['10.1.2.3:6443', 'ppp-ppp-----'],
  ['10.1.2.3:443', 'pppp-pp----p'],
  ['10.9.9.9/8', 'ppp--pp-----'],
  ['10.0.0.0/33', 'ppppppp----p'],
  ['10.', 'ppppppp----p'],
  ['0.0.3', 'ppppppp----p'],
  ['fd00::/8', 'ppppp-p----p'],
  ['fd00:0::1', 'ppppp-p----p'],
  ['[fd00::1]:6443', 'ppppp-p----p'],
  ['[fd00::1]:1', 'ppppppp----p'],
  ['::ffff:10.1.2.3', 'ppp--pp-----'],
  ['::ffff:10.0.0.0/104', 'ppp--pp-----'],
  ['bücher.de', 'pppppp-----p'],
  ['xn--bcher-kva.de', 'pppppp-----p'],
  ['localhost', 'ppppppp----p'],
  [':6443', 'ppppppp----p'],
  [' , ,', 'ppppppp----p'],
  ['*, nothing', '------------'],
  ['nothing,*', '------------'],
];

test('matches NO_PROXY as Go does', () => {
  for (const [NO_PROXY, answers] of VECTORS) {
    const environment = { HTTPS_PROXY: 'proxy:3128', NO_PROXY };
    const ours = SERVERS.map((server) => (proxyFor(new URL(server), environment) ? 'p' : '-'));
    assert.equal(ours.join(''), answers, NO_PROXY);
  }
});

test('selects the variable by scheme; upper case has precedence, empty means none', () => {
  const secure = (environment: Record<string, string>) =>
    proxyFor(new URL('https://10.0.0.1'), environment);
  assert.equal(secure({}), undefined);
  assert.equal(secure({ HTTP_PROXY: 'proxy', http_proxy: 'proxy' }), undefined);
  assert.equal(secure({ HTTPS_PROXY: 'upper', https_proxy: 'lower' }), 'http://upper');
  assert.equal(secure({ HTTPS_PROXY: '', https_proxy: 'https://lower:1' }), 'https://lower:1');
  assert.equal(secure({ https_proxy: 'socks5://lower', no_proxy: '10.0.0.0/8' }), undefined);
  const environment = { HTTPS_PROXY: 'other', http_proxy: 'me:secret@proxy:3128' };
  assert.equal(proxyFor(new URL('http://10.0.0.1'), environment), 'http://me:secret@proxy:3128');
});
