/**
 * Runs the stories and the conformance cases against real control planes: each test file that asks
 * test/support/control-plane.ts for one gets etcd and kube-apiserver instead of the embedded server.
 * Arguments, if any, are the test files to run.
 */
import { spawn } from 'node:child_process';
import { BinariesUnavailable, findOrBuild } from './envtest/binaries.ts';

const files = process.argv.slice(2);

try {
  const { kubectl } = await findOrBuild(['etcd', 'kube-apiserver', 'kubectl'], (line) =>
    console.log(`test:real: ${line}`),
  );
  runTests({ CONTROL_PLANE: 'real', KUBECTL: process.env['KUBECTL'] ?? kubectl });
} catch (error) {
  if (error instanceof BinariesUnavailable) {
    console.log(`test:real: SKIPPED, nothing was tested: ${error.message}`);
  } else {
    console.error('test:real:', error instanceof Error ? error.message : error);
    process.exitCode = 1;
  }
}

function runTests(env: Readonly<Record<string, string>>): void {
  const wanted = files.length > 0 ? files : ['test/{conformance,stories}/**/*.test.ts'];
  // Every file starts a control plane: one at a time.
  const args = ['--test', '--test-concurrency=1', '--test-timeout=600000', ...wanted];
  const child = spawn(process.execPath, args, {
    stdio: 'inherit',
    env: { ...process.env, ...env },
  });
  // Ctrl-C reaches the runner as well; it ends first and we end with it.
  process.on('SIGINT', () => undefined);
  process.once('SIGTERM', () => child.kill('SIGTERM'));
  child.once('error', (error) => {
    throw error;
  });
  child.once('close', (code) => {
    process.exitCode = code ?? 1;
  });
}
