#!/usr/bin/env node
import { unsupportedNodeMessage } from './node-version.ts';

// Everything else is imported once the version is known to be good: an old Node.js must get far
// enough to say what it needs, instead of a syntax error from somewhere in a dependency.
const complaint = unsupportedNodeMessage(process.versions.node, process.execPath);
if (complaint) {
  process.stderr.write(`${complaint}\n`);
  process.exitCode = 1;
} else {
  const { commandLine } = await import('./command-line.ts');
  const code = await commandLine(process.argv.slice(2), process.env);
  process.exitCode = code;
  // All work has ended. Whatever handle was left open must not keep the process from saying so.
  const { exitProcess } = await import('../util/process-exit.ts');
  setTimeout(() => exitProcess(process, code), 1000).unref();
}
