/**
 * This file and `main.ts` are parsed by whatever `node` the user has. Keep them free of imports and
 * of syntax younger than Node 14.
 */

const MINIMUM_MAJOR = 22;
const MINIMUM_MINOR = 19;

/** One line saying why this Node.js is too old, or undefined if it is not. */
export function unsupportedNodeMessage(version: string, execPath: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > MINIMUM_MAJOR || (major === MINIMUM_MAJOR && minor >= MINIMUM_MINOR)) {
    return undefined;
  }
  return `crd-controller needs Node.js ${MINIMUM_MAJOR}.${MINIMUM_MINOR} or newer; this is v${version} (${execPath})`;
}
