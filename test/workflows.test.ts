import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { parse } from 'yaml';
import { KUBERNETES_VERSIONS } from '../hack/envtest/binaries.ts';
import { changelogSections } from '../hack/release/changelog.ts';

interface Job {
  readonly if?: string;
  readonly needs?: readonly string[];
  readonly environment?: string;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly 'timeout-minutes'?: number;
  readonly strategy?: { readonly matrix: Readonly<Record<string, readonly string[]>> };
  readonly steps: readonly {
    readonly uses?: string;
    readonly run?: string;
    readonly with?: Readonly<Record<string, unknown>>;
  }[];
}

interface Trigger {
  readonly inputs: Readonly<Record<string, { readonly default?: unknown }>>;
}

interface Workflow {
  readonly on: Readonly<Record<string, Trigger | undefined>>;
  readonly permissions?: Readonly<Record<string, string>>;
  readonly jobs: Readonly<Record<string, Job>>;
}

const ROOT = join(import.meta.dirname, '..');
const FOLDER = join(ROOT, '.github/workflows');
const workflows = new Map(
  readdirSync(FOLDER).map((file) => [
    file,
    parse(readFileSync(join(FOLDER, file), 'utf8')) as Workflow,
  ]),
);

/** Runs for pull requests of anybody, so its jobs may only read. */
const OF_PULL_REQUESTS = 'ci.yml';

/** Returns whether a job runs only after a maintainer enables it or a job that it depends on. */
function isDisabled({ jobs }: Pick<Workflow, 'jobs'>, job: Job): boolean {
  return job.if === undefined
    ? (job.needs ?? []).some((name) => jobs[name] && isDisabled({ jobs }, jobs[name]))
    : /^vars\.[A-Z]+_ENABLED == 'true'/.test(job.if);
}

function canWrite({ permissions = {} }: Job): boolean {
  return Object.values(permissions).includes('write');
}

for (const [file, workflow] of workflows) {
  describe(`The workflow ${file}`, () => {
    for (const [name, job] of Object.entries(workflow.jobs)) {
      test(`the job ${name} can only read or is disabled by default, has a timeout, and declares its permissions`, () => {
        if (file === OF_PULL_REQUESTS) assert.deepEqual(job.permissions, { contents: 'read' });
        else assert.ok(canWrite(job) ? isDisabled(workflow, job) : true);
        assert.ok(job['timeout-minutes']);
        assert.deepEqual(workflow.permissions, {});
        assert.ok(job.permissions);
      });

      test(`the job ${name} pins actions by commit, and contains no expressions in scripts`, () => {
        for (const { uses, run, with: inputs } of job.steps) {
          if (uses !== undefined) assert.match(uses, /^[\w-]+\/[\w-]+@[0-9a-f]{40}$/);
          if (uses?.startsWith('actions/checkout@')) {
            assert.equal(inputs?.['persist-credentials'], false);
          }
          assert.ok(!run?.includes('${{'), run);
        }
      });

      test(`the job ${name} runs no install scripts if it has write permissions`, () => {
        if (!canWrite(job)) return;
        assert.equal(job.environment, 'release');
        for (const { run = '' } of job.steps) assert.doesNotMatch(run, /npm (ci|install|run)|npx/);
      });
    }
  });
}

test('pull requests run every part of .ci/run in parallel, on the oldest and the newest Node.js', () => {
  const { jobs } = workflows.get(OF_PULL_REQUESTS) ?? assert.fail();
  const [, parts = ''] =
    /parts=\((\w[^)]*)\)/.exec(readFileSync(join(ROOT, '.ci/run'), 'utf8')) ?? [];
  assert.deepEqual(
    Object.values(jobs).map(({ steps }) => steps.flatMap(({ run }) => run ?? [])),
    parts.split(' ').map((part) => [`.ci/run ${part}`]),
  );
  for (const job of Object.values(jobs))
    assert.deepEqual([job.needs, job.if], [undefined, undefined]);
  const { engines, devDependencies } = JSON.parse(
    readFileSync(join(ROOT, 'package.json'), 'utf8'),
  ) as {
    readonly engines: { readonly node: string };
    readonly devDependencies: { readonly node: string };
  };
  assert.deepEqual(jobs['test']?.strategy?.matrix['node'], [
    engines.node.replace('>=', ''),
    devDependencies.node.replace(/^\^(\d+).*/, '$1'),
  ]);
});

test('a release is started by hand, is a dry run by default, and publishes only files of the jobs that tested them', () => {
  const release = workflows.get('release.yml') ?? assert.fail();
  assert.deepEqual(Object.keys(release.on), ['workflow_dispatch']);
  assert.equal(release.on['workflow_dispatch']?.inputs['dry-run']?.default, true);
  for (const job of Object.values(release.jobs).filter(canWrite)) {
    assert.match(job.if ?? '', /&& !inputs\.dry-run$/);
    assert.ok(job.needs?.includes('check'));
    assert.deepEqual(
      job.steps.filter(({ uses }) => uses?.startsWith('actions/checkout@')),
      [],
    );
  }
});

test('a release is tested with every supported release of Kubernetes', () => {
  const others = KUBERNETES_VERSIONS.slice(1).map((version) => version.replace(/\.\d+$/, ''));
  const { kubernetes } = workflows.get('release.yml')?.jobs ?? {};
  assert.deepEqual(kubernetes?.strategy?.matrix['version'], others);
});

describe('The changelog', () => {
  test('has the format of a release', () => {
    const [newest] = changelogSections(readFileSync(join(ROOT, '.github/CHANGELOG.md'), 'utf8'));
    assert.ok(newest?.text);
  });

  test('has the newest version first, with its date', () => {
    const [next, last] = changelogSections(
      '# Changelog\n\n## [Unreleased]\n\n## [0.10.0] - 2026-12-01\n\n#### Fixed\n\n- a\n\n## [0.9.0] - 2026-11-27\n',
    );
    assert.deepEqual(next, { version: 'Unreleased', date: undefined, text: '' });
    assert.deepEqual(last, { version: '0.10.0', date: '2026-12-01', text: '#### Fixed\n\n- a' });
  });

  for (const broken of [
    '## 0.1.0 (unreleased)\n',
    '## [0.1.0]\n',
    '## [0.1.0] - 2026-11-27\n\n#### Improved\n',
    '## [0.9.0] - 2026-11-27\n## [0.10.0] - 2026-11-28\n',
    '## [0.9.0] - 2026-11-27\n## [Unreleased]\n',
  ]) {
    test(`cannot be ${JSON.stringify(broken)}`, () => {
      assert.throws(() => changelogSections(broken), Error);
    });
  }
});
