/**
 * Entry point of the bundle. The program is a script and not an ES module for two reasons: Node.js does not
 * accept a code cache for modules, and the import of a built-in module such as `node:http` reads all its
 * exports, which loads fetch, WebSocket and web streams.
 */
import { unsupportedNodeMessage } from '../../src/cli/common/node-version.ts';
import { loadProgram } from './program.ts';

const message = unsupportedNodeMessage(process.versions.node, process.execPath);
if (message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
} else {
  await loadProgram(import.meta.dirname).runCrdController();
}
