import { createHash } from 'node:crypto';
import type { Page, Pages } from '../routes.ts';
import { pageAssets } from './assets.ts';

/** Part of the page: the controllers of a program, the objects and requests of an embedded cluster, or a recording. */
export type PagePart = 'controllers' | 'cluster' | 'recording';

/**
 * Page `/debug/`: one HTML document that shows the other debug pages in a browser, without requests to other
 * origins. `/` and `/debug` redirect to it.
 *
 * Object names and messages are untrusted: the page sets them as text only, and its policy allows no other script
 * than its own.
 *
 * @param parts those whose debug pages are served
 */
export function debugPage(parts: readonly PagePart[]): Pages {
  let page: Page | undefined;
  return new Map([
    ['/', () => redirect('debug/')],
    ['/debug', () => redirect('debug/')],
    ['/debug/', () => (page ??= html(parts))],
  ]);
}

/** Without it, browsers request /favicon.ico, and Firefox reports a violation of the policy. */
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'>" +
  "<circle cx='8' cy='8' r='8' fill='%231f6feb'/><path d='M4 8l3 3 5-6' fill='none' stroke='%23fff' stroke-width='2'/></svg>";

function redirect(location: string): Page {
  return { status: 308, contentType: 'text/plain; charset=utf-8', body: '', headers: { location } };
}

function html(parts: readonly PagePart[]): Page {
  const { script, style } = pageAssets();
  if (/<\/(?:script|style)/i.test(script + style)) throw new Error('The assets end their element');
  return {
    status: 200,
    contentType: 'text/html; charset=utf-8',
    body: `<!doctype html>
<html lang="en" data-parts="${parts.join(' ')}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Controllers</title>
<link rel="icon" href="${ICON}">
<style>${style}</style>
</head>
<body>
<div id="page"><main><p class="state">Loading…</p></main></div>
<noscript><p class="state">This page needs JavaScript. The same data is at /debug/queues and /debug/status.</p></noscript>
<script type="module">${script}</script>
</body>
</html>
`,
    headers: {
      'content-security-policy': [
        "default-src 'none'",
        `script-src ${hashOf(script)}`,
        `style-src ${hashOf(style)}`,
        'img-src data:',
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types 'none'",
      ].join('; '),
      'cache-control': 'no-store',
      'referrer-policy': 'no-referrer',
      'cross-origin-opener-policy': 'same-origin',
      'cross-origin-resource-policy': 'same-origin',
    },
  };
}

function hashOf(text: string): string {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}
