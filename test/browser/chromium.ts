import { existsSync } from 'node:fs';

const PLACES = [
  '/usr/bin/chromium',
  '/usr/bin/chromium-browser',
  '/usr/bin/google-chrome',
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
];

/** Path of the browser's program, or undefined. */
export const CHROMIUM: string | undefined =
  process.env['CHROMIUM'] ?? PLACES.find((path) => existsSync(path));
