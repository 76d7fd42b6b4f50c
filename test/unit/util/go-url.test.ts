import assert from 'node:assert/strict';
import { test } from 'node:test';
import { goUrlProblem } from '../../../src/util/go-url.ts';

test('reports the URLs that Go does not parse', () => {
  const problems: Readonly<Record<string, string | undefined>> = {
    'https://a/%20/é': undefined,
    'https://[::1]:8443/x': undefined,
    'https://[fe80::1%25lo]/': undefined,
    'https://a%c3%a9/': undefined,
    'https://a:/': undefined,
    'https:a b': undefined,
    'https://a?%zz': undefined,
    'https://[::1': "missing ']' in host",
    'https://[::1]x/': 'invalid port "x" after host',
    'https://[1.2.3.4]/': 'invalid IP-literal',
    'https://a[b]/': 'invalid IP-literal',
    'https://a:b/': 'invalid port ":b" after host',
    'https://a:80:90/': 'invalid port ":80:90" after host',
    'https://a b/': 'invalid character " " in host name',
    'https://a{b}/': 'invalid character "{" in host name',
    'https://%41/': 'invalid URL escape "%41"',
    'https://a/%zz': 'invalid URL escape "%zz"',
    'https://a/%': 'invalid URL escape "%"',
    'https://a/#%zz': 'invalid URL escape "%zz"',
    'https://u v@a/': 'net/url: invalid userinfo',
    'https://a/b\nc': 'net/url: invalid control character in URL',
    ' https://a/': 'first path segment in URL cannot contain colon',
    ':x': 'missing protocol scheme',
  };
  for (const [url, problem] of Object.entries(problems)) {
    assert.equal(goUrlProblem(url)?.replace(/^parse ".*?": /, ''), problem, url);
  }
});
