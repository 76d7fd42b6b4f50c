import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium } from 'playwright-core';
import type { Browser, Page } from 'playwright-core';
import { CHROMIUM } from './chromium.ts';

const SCREENSHOTS = join(import.meta.dirname, '../../dist/screenshots');

const WIDTHS = [1440, 820, 390];
const SCHEMES = ['light', 'dark'] as const;

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Starts the browser. */
export async function startBrowser(): Promise<Browser> {
  assert.ok(CHROMIUM, 'Chromium is not installed');
  return chromium.launch({ executablePath: CHROMIUM, args: ['--no-sandbox'] });
}

/** A page, and the errors and violations of its policy that the browser reported. */
export interface WatchedPage {
  readonly page: Page;
  readonly errors: readonly string[];
}

/** Opens `url` and waits for its content. */
export async function openPage(browser: Browser, url: string): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 } });
  const page = await context.newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(String(error.stack)));
  page.on('console', (line) => {
    // The browser reports each failed request, which some tests cause.
    if (line.type() === 'error' && !line.text().startsWith('Failed to load')) {
      errors.push(line.text());
    }
  });
  await page.goto(url);
  await page.locator('main').waitFor();
  return { page, errors };
}

/** Checks what is shown with axe, and writes screenshots, in each scheme and at each width. */
export async function checkView(page: Page, name: string): Promise<void> {
  mkdirSync(SCREENSHOTS, { recursive: true });
  for (const colorScheme of SCHEMES) {
    await page.emulateMedia({ colorScheme });
    for (const width of WIDTHS) {
      await page.setViewportSize({ width, height: 900 });
      await page.screenshot({
        path: join(SCREENSHOTS, `${name}-${colorScheme}-${width}.png`),
        fullPage: true,
      });
      assert.deepEqual(await violations(page), [], `${name}, ${colorScheme}, ${width} pixels`);
      const [scrolled, shown] = await page.evaluate(() => [
        document.documentElement.scrollWidth,
        document.documentElement.clientWidth,
      ]);
      assert.ok((scrolled ?? 0) <= (shown ?? 0), `${name} is wider than ${width} pixels`);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string;
    readonly nodes: readonly { readonly target: unknown; readonly failureSummary?: string }[];
  }[];
}

async function violations(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  const { violations } = (await page.evaluate('axe.run()')) as AxeResult;
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id} ${JSON.stringify(target)}: ${failureSummary}`),
  );
}

const MAIN = join(import.meta.dirname, '../../src/cli/main.ts');

/** A command of the program in a process of its own. */
export class Program {
  readonly child: ChildProcess;
  #output = '';

  constructor(...args: string[]) {
    this.child = spawn(process.execPath, [MAIN, ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.on('data', (chunk: Buffer) => (this.#output += chunk.toString()));
    }
  }

  /** Resolves to the first group of the pattern when the program has printed it. */
  async printed(pattern: RegExp): Promise<string> {
    await eventually(async () => assert.match(this.#output, pattern), 90_000);
    return pattern.exec(this.#output)?.[1] ?? '';
  }

  async stop(): Promise<void> {
    if (this.child.exitCode !== null) return;
    this.child.kill('SIGTERM');
    await once(this.child, 'exit');
  }
}

/** Waits until `read` returns a value that passes. */
export async function eventually(check: () => Promise<void>, timeoutMs = 15_000): Promise<void> {
  const deadline = performance.now() + timeoutMs;
  for (;;) {
    try {
      await check();
      return;
    } catch (error) {
      if (performance.now() > deadline) throw error;
      await new Promise((next) => setTimeout(next, 100));
    }
  }
}

/** Returns the texts of the cells of the table with this caption. */
export async function rowsOf(page: Page, caption: string): Promise<string[][]> {
  return page
    .locator('table', { has: page.locator('caption', { hasText: caption }) })
    .evaluate((table) =>
      [...(table as HTMLTableElement).tBodies].flatMap((body) =>
        [...body.rows].map((row) => [...row.cells].map((cell) => cell.textContent ?? '')),
      ),
    );
}
