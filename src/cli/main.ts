#!/usr/bin/env node
import { unsupportedNodeMessage } from './common/node-version.ts';

// Everything else is imported after the version check, because an old Node.js fails on the syntax of the
// dependencies.
const message = unsupportedNodeMessage(process.versions.node, process.execPath);
if (message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
} else {
  const { runCrdController } = await import('./crd-controller.ts');
  await runCrdController();
}
