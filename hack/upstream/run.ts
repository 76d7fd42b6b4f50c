import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { open, readFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { findOrBuild } from '../envtest/binaries.ts';
import type { Plane, PlaneName } from './plane.ts';
import { buildKubernetesTests, buildModuleTests } from './programs.ts';
import type { TestModule } from './programs.ts';
import { APIEXTENSIONS, CONTROLLER_RUNTIME, KUBERNETES, OPERATORS } from './suites.ts';
import type { SuiteName } from './suites.ts';

/** The outcome of a test. */
export interface TestResult {
  readonly suite: SuiteName;
  /** Package or special interest group. */
  readonly group: string;
  readonly name: string;
  /** The start of its failure; undefined if it passed. */
  readonly failure?: string;
  /** Duration of the program that ran the test, in seconds. */
  readonly programSeconds?: number;
}

export interface RunOptions {
  /** Regular expression of the names of the tests. */
  readonly focus: string | undefined;
  readonly report: (line: string) => void;
}

/** Characters of a failure's message. */
const FAILURE_CHARACTERS = 240;

/** Processes for Kubernetes' tests; more than cores, because most tests wait. */
const PROCESSES = 6;

/** Names of the programs that run the tests of a suite. Each gets a plane of its own. */
export function programsOf(suite: SuiteName): readonly string[] {
  const packages = {
    'controller-runtime': CONTROLLER_RUNTIME.packages,
    apiextensions: APIEXTENSIONS.packages,
    kubernetes: ['e2e'],
    operators: OPERATORS.flatMap(({ module, packages }) =>
      packages.map((name) => `${basename(module)}/${name}`),
    ),
  };
  return packages[suite];
}

/**
 * Whether the controllers of a cluster run. The tests of controller-runtime assume that none does. Those of its
 * client and of apiextensions pass nevertheless with ours, which must not change objects too early.
 */
export function needsCluster(suite: SuiteName, program: string, plane: PlaneName): boolean {
  const worksWithOurs = program === 'pkg/client' || suite === 'apiextensions';
  return suite === 'kubernetes' || (plane === 'ours' && worksWithOurs);
}

export async function runProgram(
  suite: SuiteName,
  program: string,
  plane: Plane,
  options: RunOptions,
): Promise<readonly TestResult[]> {
  const file = join(plane.folder, 'report.json');
  if (suite === 'apiextensions') {
    await runIntegration(program, plane, file, options);
    return readVerbose(await readFile(file, 'utf8'), suite, basename(program));
  }
  if (suite === 'controller-runtime') {
    await runPackage(CONTROLLER_RUNTIME, program, plane, file, options);
    return readReport(file, suite, () => program);
  }
  if (suite === 'operators') {
    const [operator = ''] = program.split('/', 1);
    const module = OPERATORS.find(({ module: path }) => basename(path) === operator);
    if (!module) throw new Error(`unknown operator ${operator}`);
    await runPackage(module, program.slice(operator.length + 1), plane, file, options);
    return readReport(file, suite, () => program);
  }
  await runEndToEnd(plane, file, options);
  return readReport(file, suite, (name) => /\[(sig-[a-z-]+)\]/.exec(name)?.[1] ?? 'other');
}

async function runPackage(
  module: TestModule,
  name: string,
  plane: Plane,
  file: string,
  { focus, report }: RunOptions,
): Promise<void> {
  const programs = await buildModuleTests(module, report);
  const program = programs.get(name) ?? '';
  const args = [`--ginkgo.json-report=${file}`, '--ginkgo.timeout=15m'];
  if (focus !== undefined) args.push(`--ginkgo.focus=${focus}`);
  await execute(program, args, dirname(program), plane.environment);
}

async function runIntegration(
  name: string,
  plane: Plane,
  file: string,
  { focus = '.', report }: RunOptions,
): Promise<void> {
  const program = (await buildModuleTests(APIEXTENSIONS, report)).get(name) ?? '';
  const args = ['-test.v', '-test.timeout=20m', `-test.run=${focus}`];
  args.push(`-test.skip=${APIEXTENSIONS.skip}`);
  await execute(program, args, dirname(program), plane.environment, file);
}

async function runEndToEnd(
  plane: Plane,
  file: string,
  { focus, report }: RunOptions,
): Promise<void> {
  const { e2e, ginkgo } = await buildKubernetesTests(KUBERNETES.version, report);
  const { kubectl } = await findOrBuild(['kubectl'], report);
  const args = [
    `--procs=${PROCESSES}`,
    '--timeout=60m',
    `--json-report=${basename(file)}`,
    `--output-dir=${dirname(file)}`,
    ...(focus === undefined ? KUBERNETES.focus : [focus]).map((pattern) => `--focus=${pattern}`),
    ...KUBERNETES.skip.map((pattern) => `--skip=${pattern}`),
    e2e,
    '--',
    `--kubeconfig=${plane.environment['KUBECONFIG']}`,
    `--kubectl-path=${kubectl}`,
    '--provider=skeleton',
    '--dump-logs-on-failure=false',
  ];
  await execute(ginkgo, args, plane.folder);
}

/**
 * Runs a test program to its end. The exit code is ignored, because the report has the outcome of each test.
 *
 * @param log file for its stdout
 */
async function execute(
  program: string,
  args: readonly string[],
  cwd: string,
  env: Readonly<Record<string, string>> = {},
  log: string = '/dev/null',
): Promise<void> {
  await using output = await open(log, 'w');
  const stdio = ['ignore', output.fd, 'ignore'] as const;
  const child = spawn(program, args, { cwd, env: { ...process.env, ...env }, stdio: [...stdio] });
  const stop = () => child.kill('SIGINT');
  process.once('exit', stop);
  await once(child, 'close');
  process.off('exit', stop);
}

/** The parts of Ginkgo's JSON report that are used. */
interface Spec {
  readonly ContainerHierarchyTexts: readonly string[] | null;
  readonly LeafNodeType: string;
  readonly LeafNodeText: string;
  readonly State: string;
  readonly Failure?: { readonly Message: string };
}

/** Returns the tests that ran. A failed set-up of the suite is listed as a test. */
async function readReport(
  file: string,
  suite: SuiteName,
  groupOf: (name: string) => string,
): Promise<readonly TestResult[]> {
  const reports = JSON.parse(await readFile(file, 'utf8')) as { SpecReports: Spec[] | null }[];
  const seen = new Map<string, number>();
  return reports
    .flatMap(({ SpecReports }) => SpecReports ?? [])
    .filter(({ LeafNodeType, State }) =>
      LeafNodeType === 'It' ? State !== 'skipped' && State !== 'pending' : State !== 'passed',
    )
    .map(({ ContainerHierarchyTexts, LeafNodeType, LeafNodeText, State, Failure }) => {
      const title = [...(ContainerHierarchyTexts ?? []), LeafNodeText || `[${LeafNodeType}]`].join(
        ' ',
      );
      const count = (seen.get(title) ?? 0) + 1;
      seen.set(title, count);
      const name = count === 1 ? title : `${title} (${count})`;
      const result = { suite, group: groupOf(name), name };
      return State === 'passed'
        ? result
        : Object.assign(result, { failure: summary(Failure?.Message ?? '') || State });
    });
}

/** Returns the tests in the output of `go test -v`. A test that did not end has failed. */
function readVerbose(output: string, suite: SuiteName, group: string): readonly TestResult[] {
  const states = new Map<string, string>();
  const messages = new Map<string, string>();
  let current = '';
  for (const line of output.split('\n')) {
    const [, action, name = ''] = /^ *(?:===|---) (\w+):? +(\S+)/.exec(line) ?? [];
    if (action === undefined) {
      if (/^ +\S+\.go:\d+: /.test(line)) messages.set(current, line);
    } else if (['PASS', 'FAIL', 'SKIP'].includes(action)) states.set(name, action);
    else {
      current = name;
      if (action === 'RUN') states.set(name, 'unfinished');
    }
  }
  return [...states]
    .filter(([, state]) => state !== 'SKIP')
    .map(([name, state]) =>
      state === 'PASS'
        ? { suite, group, name }
        : { suite, group, name, failure: summary(messages.get(name) ?? '') || state },
    );
}

/** Returns the start of a failure in one line, without the types and addresses of Go values. */
function summary(message: string): string {
  return message
    .replaceAll(/<[^<>]*(?:\| 0x[0-9a-f]+)?>:?/g, ' ')
    .replaceAll(/\s+/g, ' ')
    .trim()
    .slice(0, FAILURE_CHARACTERS);
}
