import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { describe, it } from 'node:test';
import { Script } from 'node:vm';
import { debugPage } from '../../../../src/serving/page/debug-page.ts';

const PAGES = debugPage(['controllers']);

function get(path: string) {
  return PAGES.get(path)?.(new URLSearchParams()) ?? assert.fail();
}

describe('the debug page', () => {
  const { body, headers = {} } = get('/debug/');
  const part = (tag: string) =>
    new RegExp(`<${tag}[^>]*>(.*?)</${tag}>`, 's').exec(body)?.[1] ?? '';

  it('is one small document that loads nothing', () => {
    assert.ok(body.length < 200_000, `${body.length} bytes`);
    // The namespaces of SVG, MathML and HTML are names.
    const addresses = body
      .replaceAll(/http:\/\/www\.w3\.org\/[\w/]+/g, '')
      .match(/https?:\/\/|\ssrc=/g);
    assert.equal(addresses, null);
    assert.ok(new Script(part('script')));
  });

  it('allows its own script and style only', () => {
    const hashOf = (text: string) => createHash('sha256').update(text).digest('base64');
    const policy = headers['content-security-policy'] ?? '';
    for (const tag of ['script', 'style']) {
      assert.ok(policy.includes(`${tag}-src 'sha256-${hashOf(part(tag))}';`), tag);
    }
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.match(policy, /require-trusted-types-for 'script'/);
    assert.doesNotMatch(policy, /unsafe|\*|http/);
  });

  it('is where the addresses without a path lead', () => {
    for (const path of ['/', '/debug']) {
      const { status, headers } = get(path);
      assert.deepEqual([status, headers?.['location']], [308, 'debug/'], path);
    }
  });
});
