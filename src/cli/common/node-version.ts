/**
 * `main.ts` and this file are parsed by any version of Node.js. They have no other imports and no syntax
 * newer than Node.js 14.
 */

const MINIMUM_MAJOR = 22;
const MINIMUM_MINOR = 19;

/** Returns an error message if this Node.js is too old. */
export function unsupportedNodeMessage(version: string, execPath: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > MINIMUM_MAJOR || (major === MINIMUM_MAJOR && minor >= MINIMUM_MINOR)) {
    return undefined;
  }
  return `crd-controller needs Node.js ${MINIMUM_MAJOR}.${MINIMUM_MINOR} or newer; this is v${version} (${execPath}). For npx and npm scripts in this folder: npm install node@24`;
}
