#!/usr/bin/env node
import { unsupportedNodeMessage } from './node-version.ts';

// Everything else is imported after the version check, because an old Node.js fails on the syntax of the
// dependencies.
const message = unsupportedNodeMessage(process.versions.node, process.execPath);
if (message) {
  process.stderr.write(`${message}\n`);
  process.exitCode = 1;
} else {
  const { commandLine } = await import('./command-line.ts');
  const code = await commandLine(process.argv.slice(2), process.env);
  process.exitCode = code;
  // All work has ended. An open handle must not delay the exit.
  const { exitProcess } = await import('../util/process-exit.ts');
  setTimeout(() => exitProcess(process, code), 1000).unref();
}
