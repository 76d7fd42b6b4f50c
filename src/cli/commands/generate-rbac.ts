import { spawn } from 'node:child_process';
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import { withPermissions } from '../../codegen/role-rules.ts';
import { OBSERVED_ROLES } from '../../codegen/tested-role.ts';
import type { ObservedPermissions } from '../../codegen/tested-role.ts';
import { goQuote } from '../../util/go-quote.ts';
import { messageOf } from '../../util/values.ts';
import { EXIT_FAILURE, EXIT_OK, onPath, UsageError } from '../common/errors.ts';
import type { OptionValues } from '../flags/option.ts';
import type { GENERATE_OPTIONS } from '../flags/options.ts';
import type { CommandContext } from '../program/program.ts';

/** Command that runs the tests of a project, and its arguments. */
export type TestCommand = readonly [file: string, ...args: string[]];

const NPM_TEST: TestCommand = ['npm', 'test'];

/**
 * Runs the tests of the project in this folder, in which each `TestedRole` may do everything, and writes the
 * ClusterRoles that they needed. Writes nothing if a test fails.
 *
 * @throws {UsageError} if no test verifies a `TestedRole`, or a file does not have exactly one ClusterRole
 */
export async function generateRbac(
  operands: readonly string[],
  { check }: Pick<OptionValues<typeof GENERATE_OPTIONS>, 'check'>,
  {
    print,
    warn,
    environment,
    signal,
  }: Pick<CommandContext, 'print' | 'warn' | 'environment' | 'signal'>,
  command: TestCommand = NPM_TEST,
): Promise<number> {
  const [stray] = operands;
  if (stray !== undefined)
    throw new UsageError(`generate rbac takes no arguments: got ${goQuote(stray)}`);
  const folder = await mkdtemp(join(tmpdir(), 'observed-roles-'));
  try {
    const { code, output } = await runTests(
      command,
      { ...environment, [OBSERVED_ROLES]: folder },
      signal,
    );
    if (code !== 0) {
      warn(output.trimEnd());
      warn('The tests failed, so the roles were not written');
      return EXIT_FAILURE;
    }
    const roles = await observedIn(folder);
    if (roles.size === 0)
      throw new UsageError('No test called verify() of a TestedRole of crd-controller/testing');
    let stale = 0;
    for (const [file, permissions] of roles) {
      const present = await onPath(`cannot read ${file}`, () => readFile(file, 'utf8'));
      const text = roleText(file, present, permissions);
      const name = relative('.', file);
      if (text === present) continue;
      stale += 1;
      if (!check) await onPath(`cannot write ${file}`, () => writeFile(file, text));
      print(check ? `${name} is stale: run crd-controller generate rbac` : name);
    }
    if (stale === 0) print('The roles are up to date');
    return check && stale > 0 ? EXIT_FAILURE : EXIT_OK;
  } finally {
    await rm(folder, { recursive: true });
  }
}

function roleText(file: string, text: string, permissions: ReadonlySet<string>): string {
  try {
    return withPermissions(text, permissions);
  } catch (error) {
    throw new UsageError(`${file} ${messageOf(error)}`);
  }
}

async function observedIn(folder: string): Promise<Map<string, Set<string>>> {
  const roles = new Map<string, Set<string>>();
  for (const name of (await readdir(folder)).toSorted()) {
    const text = await readFile(join(folder, name), 'utf8');
    const { file, permissions }: ObservedPermissions = JSON.parse(text);
    const all = roles.get(file) ?? new Set();
    for (const permission of permissions) all.add(permission);
    roles.set(file, all);
  }
  return roles;
}

function runTests(
  [file, ...args]: TestCommand,
  environment: Readonly<Record<string, string | undefined>>,
  signal: AbortSignal,
): Promise<{ readonly code: number | null; readonly output: string }> {
  // In a process of node:test, the variable makes a test runner print for its parent.
  const { NODE_TEST_CONTEXT: _, ...env } = environment;
  const child = spawn(file, args, {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
    signal,
  });
  const chunks: Buffer[] = [];
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk: Buffer) => chunks.push(chunk));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => resolve({ code, output: Buffer.concat(chunks).toString() }));
  });
}
