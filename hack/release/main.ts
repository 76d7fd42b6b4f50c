/**
 * Prepares a release: builds and tests what is published, and writes it to dist/release/. It publishes nothing: the workflow
 * `release` publishes these files and no others.
 *
 *   npm run release                fails if this commit cannot be released as the version in package.json
 *   npm run release -- --dry-run   reports why it cannot, and does everything else
 *
 * $IMAGE is the name of the image in the manifest, without its tag.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { changelogSections } from './changelog.ts';

const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } });
const dryRun = values['dry-run'];
const { IMAGE: image = 'crd-controller', GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
const root = join(import.meta.dirname, '../..');
const out = join(root, 'dist/release');
const manifest = readFileSync(join(root, 'package.json'), 'utf8');
const { name, version } = JSON.parse(manifest) as {
  readonly name: string;
  readonly version: string;
};
const tarball = join(out, `${name}-${version}.tgz`);
const sections = changelogSections(readFileSync(join(root, '.github/CHANGELOG.md'), 'utf8'));
const scratch = mkdtempSync(join(tmpdir(), 'release-'));
const app = join(scratch, 'app');

const STEPS: Readonly<Record<string, () => void>> = {
  'the version and its changes': checkVersion,
  'the package': pack,
  'the package, installed into an empty folder, and the tests of a new project': () =>
    run('hack/try-package.sh', tarball, app),
  'the files of the image': () => {
    run('npm', 'run', '--silent', 'bundle');
    run('hack/try-bundle.sh', 'dist/image');
    run('node', 'hack/image/code-cache.ts', 'dist/image');
    cpSync(join(root, 'dist/image/sbom.cdx.json'), join(out, 'image.sbom.cdx.json'));
  },
  'the manifest, printed by the installed package': () =>
    save(
      'install.yaml',
      join(app, 'node_modules/.bin', name),
      'manifests',
      `--image=${image}:${version}`,
    ),
  'the Helm chart, written by the installed package': packChart,
  'the SBOM of the installed package': () =>
    save('package.sbom.cdx.json', 'npm', 'sbom', '--sbom-format=cyclonedx', `--prefix=${app}`),
  'what the registry would get': () =>
    run('npm', 'publish', '--dry-run', '--ignore-scripts', '--loglevel=error', tarball),
  'notes and checksums': writeNotes,
};

try {
  for (const [index, [title, step]] of Object.entries(STEPS).entries()) {
    console.log(`release: ${index + 1}/${Object.keys(STEPS).length} ${title}`);
    step();
  }
  console.log(`release: ${name} ${version} is in dist/release${dryRun ? ' (dry run)' : ''}`);
} finally {
  rmSync(scratch, { recursive: true, force: true });
}

function checkVersion(): void {
  if (!sections.some((section) => section.version === version)) {
    obstacle(`.github/CHANGELOG.md has no section "## [${version}] - DATE"`);
  }
  if (output('git', 'status', '--porcelain') !== '') obstacle('files differ from the commit');
  if (output('git', 'tag', '--list', `v${version}`) !== '') obstacle(`tag v${version} exists`);
}

/** The registry accepts provenance only of a package that names the repository it was built in. */
function pack(): void {
  try {
    if (GITHUB_REPOSITORY) {
      run('npm', 'pkg', 'set', `repository.url=git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git`);
    }
    run('npm', 'run', '--silent', 'build');
    // The build starts with an empty dist/.
    mkdirSync(out);
    run('npm', 'pack', '--silent', '--ignore-scripts', '--pack-destination', out);
  } finally {
    writeFileSync(join(root, 'package.json'), manifest);
  }
}

/** The file has the version and the type in its name, because that of the package is NAME-VERSION.tgz. */
function packChart(): void {
  const program = join(app, 'node_modules/.bin', name);
  const flags = [`--name=${name}`, `--image=${image}:${version}`, `--chart=${join(scratch, name)}`];
  run(program, 'generate', 'helm', ...flags);
  const file = join(out, `${name}-chart-${version}.tgz`);
  run(
    'tar',
    '--sort=name',
    '--owner=0',
    '--group=0',
    '--mtime=@0',
    '-czf',
    file,
    '-C',
    scratch,
    name,
  );
}

function writeNotes(): void {
  const section = sections.find((each) => each.version === version) ?? sections[0];
  writeFileSync(join(out, 'notes.md'), `${section?.text}\n`);
  const lines = readdirSync(out).map((file) => {
    const hash = createHash('sha256')
      .update(readFileSync(join(out, file)))
      .digest('hex');
    return `${hash}  ${file}\n`;
  });
  writeFileSync(join(out, 'SHA256SUMS'), lines.join(''));
  process.stdout.write(lines.join(''));
}

/** Something that makes this commit no release. */
function obstacle(reason: string): void {
  if (!dryRun) throw new Error(`${version} cannot be released: ${reason}`);
  console.log(`release: would stop: ${reason}`);
}

function run(command: string, ...args: readonly string[]): void {
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: ['ignore', 'inherit', 'inherit'],
  });
  if (status !== 0) throw error ?? new Error(`${command} ${args.join(' ')} failed`);
}

function output(command: string, ...args: readonly string[]): string {
  const { status, stdout, error } = spawnSync(command, args, {
    cwd: root,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 64 * 2 ** 20,
  });
  if (status !== 0) throw error ?? new Error(`${command} ${args.join(' ')} failed`);
  return stdout;
}

function save(file: string, command: string, ...args: readonly string[]): void {
  writeFileSync(join(out, file), output(command, ...args));
}
