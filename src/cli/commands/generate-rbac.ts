import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { createInterface } from 'node:readline';
import { withPermissions } from '../../codegen/role-rules.ts';
import { OBSERVED_ROLES } from '../../codegen/tested-role.ts';
import type { ObservedPermissions } from '../../codegen/tested-role.ts';
import { formatDuration } from '../../util/duration.ts';
import { goQuote } from '../../util/go-quote.ts';
import { hasErrorCode, messageOf } from '../../util/values.ts';
import { EXIT_FAILURE, EXIT_OK, onPath, UsageError } from '../common/errors.ts';
import { newTemporaryFolder } from '../common/temporary-folder.ts';
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
  {
    check,
    'test-timeout': limitMs,
  }: Pick<OptionValues<typeof GENERATE_OPTIONS>, 'check' | 'test-timeout'>,
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
  const folder = await newTemporaryFolder('observed-roles-');
  try {
    const failure = await runTests(command, {
      // The lines are printed as text: Vitest has colours in CI, too.
      environment: {
        ...environment,
        NO_COLOR: '1',
        FORCE_COLOR: undefined,
        [OBSERVED_ROLES]: folder,
      },
      signal,
      limitMs,
      warn,
    });
    if (failure !== undefined) {
      warn(`The tests ${failure}, so the roles were not written`);
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

interface TestRun extends Pick<CommandContext, 'warn' | 'environment' | 'signal'> {
  readonly limitMs: number;
}

/** Runs the tests, and passes on each line of their output. Returns why they failed, or undefined. */
async function runTests(
  [file, ...args]: TestCommand,
  { environment, signal, limitMs, warn }: TestRun,
): Promise<string | undefined> {
  // In a process of node:test, the variable makes a test runner print for its parent.
  const { NODE_TEST_CONTEXT: _, ...env } = environment;
  const isWindows = process.platform === 'win32';
  // A group of its own: npm runs the tests in processes below it, which must end, too.
  const options = { env, shell: isWindows, detached: !isWindows };
  const child = spawn(file, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  const end = () => {
    if (child.pid === undefined) return;
    if (isWindows) child.kill();
    else {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch (error) {
        // All processes have ended.
        if (!hasErrorCode(error, 'ESRCH')) throw error;
      }
    }
  };
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    end();
  }, limitMs);
  signal.addEventListener('abort', end, { once: true });
  try {
    const lines = [child.stdout, child.stderr].map(async (stream) => {
      for await (const line of createInterface(stream)) warn(line);
    });
    const [code] = (await once(child, 'exit')) as [number | null];
    await Promise.all(lines);
    signal.throwIfAborted();
    if (isLate) return `took longer than ${formatDuration(limitMs)} (--test-timeout)`;
    return code === 0 ? undefined : 'failed';
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', end);
  }
}
