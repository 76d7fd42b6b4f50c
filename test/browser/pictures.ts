/**
 * Writes the pictures of the debug page in the documentation from a run of the demo: `npm run test:browser -- --pictures`.
 *
 * A picture is an SVG with the elements and the style of the page, because the repository contains text only. GitHub
 * shows such a file in a README, and does not run scripts in it. The picture follows the colour scheme of the reader.
 * `npm run test:browser` fails if a picture has another style than the page, or columns that the page has not.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { transformSync } from 'esbuild';
import type { Browser, Page } from 'playwright-core';
import { explore, ViolationError } from '../../src/explore/explore.ts';
import { readRecording } from '../../src/replay/read-recording.ts';
import { timelinePages } from '../../src/replay/timeline-pages.ts';
import { Timeline } from '../../src/replay/timeline.ts';
import { HttpServer } from '../../src/serving/http-server.ts';
import { pageAssets } from '../../src/serving/page/assets.ts';
import { silentLogger } from '../../src/util/logger.ts';
import { CREATES_FROM_CACHE, naiveOptions } from '../support/naive-controllers.ts';
import { eventually, openPage, Program, startBrowser } from './browser.ts';

const DOCS = join(import.meta.dirname, '../../docs');
const DRAFTS = join(import.meta.dirname, '../../dist/screenshots');

/** Width of the pictures, as the width of a view in the browser, and height at which they are cut. */
const WIDTH = 1100;
const MAX_HEIGHT = 1250;

/** Fragments of the views by the file of their picture. */
const DEMO_PICTURES: Readonly<Record<string, string>> = {
  'debug-page.svg': '#/',
  'debug-page-key.svg': '#/key?controller=count&key=default/test-count',
};

/** The picture of a schedule that `explore` found, with its first fault selected. */
const RECORDING_PICTURE = 'debug-page-recording.svg';
const FIRST_FAULT = '#/?at=7';

/** The files of all pictures. */
export const PICTURES: readonly string[] = [...Object.keys(DEMO_PICTURES), RECORDING_PICTURE];

/**
 * Style of the pictures: that of the page without its layout for narrow screens, which depends on the size in which
 * a reader sees the picture.
 */
function styleOfPictures(): string {
  const { style } = pageAssets();
  const wide = style.replaceAll(/^@media \(max-width[^]*?^}$/gm, '');
  const fixed = '.scroll, .tall .scroll, .yaml { overflow: hidden; max-height: none }';
  return transformSync(`${wide}\n${fixed}`, { minify: true, loader: 'css' }).code.trim();
}

/** Returns why a picture does not show the current page: its style, and titles of columns that the page has not. */
export function differencesOf(file: string): string[] {
  const svg = readFileSync(join(DOCS, file), 'utf8');
  const { script } = pageAssets();
  const titles = Array.from(
    svg.matchAll(/<th scope="col"[^>]*>(.*?)<\/th>/gs),
    ([, title = '']) => title,
  );
  return [
    ...(svg.includes(`<style>${styleOfPictures()}</style>`) ? [] : ['style']),
    ...titles.filter((title) => !script.includes(`"${title}"`)),
  ];
}

/** Returns a picture of what `page` shows. */
async function pictureOf(page: Page, label: string): Promise<string> {
  await page.setViewportSize({ width: WIDTH, height: 900 });
  const { markup, height } = await page.evaluate(() => {
    const root = document.querySelector('#page');
    return {
      markup: root ? new XMLSerializer().serializeToString(root) : '',
      height: root?.clientHeight ?? 0,
    };
  });
  const content = markup.replaceAll(/ (?:tabindex|title|onclick)="[^"]*"/g, '');
  // The font of a reader may be larger.
  const high = Math.min(MAX_HEIGHT, Math.ceil(height * 1.02));
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${high}" width="${WIDTH}" height="${high}" role="img" aria-label="${label}">
<foreignObject width="100%" height="100%">
<body xmlns="http://www.w3.org/1999/xhtml"><style>${styleOfPictures()}</style>
${content.replaceAll('</tr>', '</tr>\n').replaceAll('</section>', '</section>\n')}
</body>
</foreignObject>
</svg>
`;
}

/** Writes the pictures, and screenshots of the files as an image of another page shows them. */
export async function writePictures(): Promise<void> {
  const browser = await startBrowser();
  try {
    await pictureDemo(browser);
    await pictureSchedule(browser);
  } finally {
    await browser.close();
  }
}

async function pictureDemo(browser: Browser): Promise<void> {
  const demo = new Program('demo', '--web', '--keep');
  try {
    const url = await demo.printed(/(http:\/\/[\d.:]+\/debug\/)/);
    await eventually(async () => void (await fetch(url)));
    const { page } = await openPage(browser, url);
    await demo.printed(/(Try kubectl)/);
    for (const [file, fragment] of Object.entries(DEMO_PICTURES)) {
      await page.goto(url + fragment);
      await page.locator('.card').nth(3).waitFor();
      await writePicture(browser, page, file, 'Debug page of the demo');
    }
  } finally {
    await demo.stop();
  }
}

async function pictureSchedule(browser: Browser): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'picture-'));
  const recording = join(folder, 'schedule.ndjson');
  await explore({ ...naiveOptions(CREATES_FROM_CACHE), recording }).catch((error: unknown) => {
    if (!(error instanceof ViolationError)) throw error;
  });
  const timeline = new Timeline('schedule.ndjson', await readRecording(recording));
  const server = new HttpServer(
    { log: silentLogger },
    { name: 'page', bindAddress: '127.0.0.1:0', routes: { pages: timelinePages(timeline) } },
  );
  const stop = new AbortController();
  const running = server.run(stop.signal);
  try {
    const url = `http://${await server.listening}/debug/${FIRST_FAULT}`;
    const { page } = await openPage(browser, url);
    await page.locator('.details .yaml').waitFor();
    await writePicture(browser, page, RECORDING_PICTURE, 'Timeline of a schedule');
  } finally {
    stop.abort();
    await running;
    rmSync(folder, { recursive: true });
  }
}

async function writePicture(
  browser: Browser,
  page: Page,
  file: string,
  label: string,
): Promise<void> {
  mkdirSync(DRAFTS, { recursive: true });
  const svg = await pictureOf(page, label);
  writeFileSync(join(DOCS, file), svg);
  const { page: reader } = await openPage(browser, 'data:text/html,<main>reader</main>');
  const source = Buffer.from(svg).toString('base64');
  for (const colorScheme of ['light', 'dark'] as const) {
    await reader.emulateMedia({ colorScheme });
    await reader.setContent(
      `<main><img width="880" src="data:image/svg+xml;base64,${source}"></main>`,
    );
    const path = join(DRAFTS, `picture-${colorScheme}-${file.replace('.svg', '.png')}`);
    await reader.screenshot({ path, fullPage: true });
  }
  console.log(`docs/${file}: ${svg.length} bytes`);
}
