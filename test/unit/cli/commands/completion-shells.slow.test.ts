import assert from 'node:assert/strict';
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { commandLine } from '../../../../src/cli/command-line.ts';
import { completion } from '../../../../src/cli/commands/completion.ts';
import { flagNamed } from '../../../../src/cli/flags/flag-parser.ts';
import { COMMANDS, COMMAND_OPTIONS, CONTROLLERS, PROGRAM } from '../../../support/own-program.ts';

async function scriptFor(shell: string): Promise<string> {
  let text = '';
  await completion([shell], PROGRAM, { print: (line) => (text += `${line}\n`) });
  return text;
}

/** Returns the answer of the program to a completion script. */
async function answerTo(words: readonly string[]): Promise<string> {
  let text = '';
  const print = (line: string) => (text += `${line}\n`);
  await commandLine(
    PROGRAM,
    ['--get-yargs-completions', ...words],
    {},
    { print, warn: print, colour: false },
  );
  return text;
}

const isThere = (shell: string) => spawnSync(shell, ['-c', 'true']).status === 0;

const folder = mkdtempSync(join(tmpdir(), 'completion-'));
mkdirSync(join(folder, 'config'));
mkdirSync(join(folder, 'con text'));
writeFileSync(join(folder, 'cluster.yaml'), '');
const answers = mkdtempSync(join(tmpdir(), 'answers-'));
after(() => {
  for (const each of [folder, answers]) rmSync(each, { recursive: true, force: true });
});

/** Offers of a shell by input. */
type Offers = ReadonlyMap<string, readonly string[]>;

/**
 * Returns the offers of one shell for all lines.
 *
 * @param program defines a function with the answers of the program in $ANSWERS, loads $SCRIPT, and prints for each line
 *   of its input the offers and `.`
 */
async function offersOf(
  shell: string,
  [option, program]: readonly [option: string, program: string],
  lines: readonly string[],
): Promise<Offers> {
  for (const line of lines) {
    const [, ...words] = line.split(' ');
    writeFileSync(join(answers, `${words.join(' ')}.txt`), await answerTo(words));
  }
  const output = execFileSync(shell, [option, '-c', program], {
    cwd: folder,
    env: { ...process.env, SCRIPT: await scriptFor(shell), ANSWERS: answers },
    input: `${lines.join('\n')}\n`,
  });
  const printed = String(output).split(/^\.\n/m);
  return new Map(
    lines.map((line, at) => [line, (printed[at] ?? '').split('\n').filter((word) => word !== '')]),
  );
}

const TYPED = [
  ...COMMANDS.map(({ name }) => `crd-controller ${name} -`),
  'crd-controller ',
  'crd-controller se',
  'crd-controller --kubeconf',
  'crd-controller -kubeconf',
  'crd-controller --logging-format=',
  'crd-controller --logging-format j',
  'crd-controller --logging_format=te',
  'crd-controller apply --dry-run=',
  'crd-controller --dry-run=',
  'crd-controller --leader-elect ',
  'crd-controller --leader-elect=f',
  'crd-controller -v 4 --context x se',
  'crd-controller --controllers=',
  'crd-controller --controllers=count,fo',
  'crd-controller --controllers=count,c',
  'crd-controller manifests --only crds,',
  'crd-controller --feature-gates=WatchListClient=t',
  'crd-controller --kubeconfig=c',
  'crd-controller init --dir co',
  'crd-controller generate cl',
  'crd-controller completion ',
  'crd-controller serve --leader',
  'crd-controller version x',
  'crd-controller --as=',
];

const BASH = `
crd-controller() { shift; cat "$ANSWERS/$*.txt"; }
eval "$SCRIPT"
COMP_WORDBREAKS=$' \\t\\n"\\'><=;|&(:'
while IFS= read -r COMP_LINE; do
  COMP_POINT=\${#COMP_LINE}
  COMPREPLY=()
  _crd_controller
  printf '%s\\n' "\${COMPREPLY[@]}"
  echo .
done`;

describe('in bash', { skip: !isThere('bash') && 'there is no bash' }, () => {
  let offers: Offers;
  const offered = (line: string) => [...(offers.get(line) ?? [])].toSorted();

  before(async () => {
    offers = await offersOf('bash', ['--norc', BASH], TYPED);
  });

  test('offers every flag of every command, except hidden ones', () => {
    for (const { name, options } of COMMAND_OPTIONS) {
      const flags = Object.entries(options)
        .filter(([, { hidden }]) => !hidden)
        .flatMap(([flag, { aliases = [], type }]) =>
          [flag, ...aliases].map((each) =>
            type === 'boolean' || each.length === 1 ? flagNamed(each) : `${flagNamed(each)}=`,
          ),
        );
      assert.deepEqual(offered(`crd-controller ${name} -`), flags.toSorted(), name);
    }
  });

  test('offers commands if there is none yet', () => {
    const names = COMMANDS.map(({ name }) => name);
    assert.deepEqual(offered('crd-controller '), names.toSorted());
    assert.deepEqual(offered('crd-controller se'), ['serve']);
    assert.deepEqual(offered('crd-controller -v 4 --context x se'), ['serve']);
    assert.deepEqual(offered('crd-controller --leader-elect '), names.toSorted());
    assert.deepEqual(offered('crd-controller version x'), []);
  });

  test('offers flags of run without a command, and flags of the named command', () => {
    assert.deepEqual(offered('crd-controller --kubeconf'), ['--kubeconfig=']);
    assert.deepEqual(offered('crd-controller serve --leader'), []);
  });

  test('offers choices as values, after = and as the next word', () => {
    assert.deepEqual(offered('crd-controller --logging-format='), ['json', 'text']);
    assert.deepEqual(offered('crd-controller --logging-format j'), ['json']);
    assert.deepEqual(offered('crd-controller --logging_format=te'), ['text']);
    assert.deepEqual(offered('crd-controller apply --dry-run='), ['none', 'server']);
    assert.deepEqual(offered('crd-controller --dry-run='), ['false', 'true']);
    assert.deepEqual(offered('crd-controller --leader-elect=f'), ['false']);
    assert.deepEqual(offered('crd-controller completion '), ['bash', 'fish', 'zsh']);
    assert.deepEqual(offered('crd-controller --as='), []);
  });

  test('offers each element of a list once', () => {
    const names = CONTROLLERS;
    const both = [...names, ...names.map((name) => `-${name}`)].toSorted();
    assert.deepEqual(offered('crd-controller --controllers='), both);
    assert.deepEqual(offered('crd-controller --controllers=count,fo'), ['count,foo']);
    assert.deepEqual(offered('crd-controller --controllers=count,c'), []);
    assert.deepEqual(offered('crd-controller manifests --only crds,'), [
      'crds,manager',
      'crds,namespace',
      'crds,rbac',
      'crds,webhook',
    ]);
  });

  test('completes a value that contains =', () => {
    assert.deepEqual(offered('crd-controller --feature-gates=WatchListClient=t'), ['true']);
  });

  test('offers files for files, and folders for folders', () => {
    assert.deepEqual(offered('crd-controller --kubeconfig=c'), [
      'cluster.yaml',
      'con text',
      'config',
    ]);
    assert.deepEqual(offered('crd-controller init --dir co'), ['con text', 'config']);
    assert.deepEqual(offered('crd-controller generate cl'), ['cluster.yaml']);
  });
});

const FISH = `
function crd-controller; cat $ANSWERS/"$argv[2..-1]".txt; end
echo $SCRIPT | source
while read -l line
  complete -C "$line" | string replace -r '\\t.*' ''
  echo .
end`;

describe('in fish', { skip: !isThere('fish') && 'there is no fish' }, () => {
  test('offers commands, flags, choices and files', async () => {
    const offers = await offersOf('fish', ['--no-config', FISH], TYPED);
    assert.deepEqual(
      [...(offers.get('crd-controller ') ?? [])].toSorted(),
      COMMANDS.map(({ name }) => name).toSorted(),
    );
    assert.deepEqual(offers.get('crd-controller --kubeconf'), ['--kubeconfig=']);
    assert.deepEqual(offers.get('crd-controller --logging-format j'), ['json']);
    assert.deepEqual(offers.get('crd-controller -v 4 --context x se'), ['serve']);
    assert.deepEqual(offers.get('crd-controller --controllers=count,fo'), [
      '--controllers=count,foo',
    ]);
    assert.deepEqual(offers.get('crd-controller generate cl'), ['cluster.yaml']);
    assert.deepEqual(offers.get('crd-controller --kubeconfig=c'), [
      '--kubeconfig=cluster.yaml',
      '--kubeconfig=con text/',
      '--kubeconfig=config/',
    ]);
    assert.deepEqual(offers.get('crd-controller init --dir co'), ['con text/', 'config/']);
    assert.deepEqual(offers.get('crd-controller serve --leader'), []);
  });
});

const ZSH = `
crd-controller() { shift; cat "$ANSWERS/$*.txt"; }
compdef() { }
compset() { }
_files() { print -rl -- *(/) ; [[ $1 == -/ ]] || print -rl -- *(.) }
_describe() { print -rl -- $offers $joined }
eval "$SCRIPT"
while IFS= read -r line; do
  words=("\${(@s: :)line}") CURRENT=$#words
  _crd_controller
  echo .
done`;

describe('in zsh', { skip: !isThere('zsh') && 'there is no zsh' }, () => {
  test('offers commands, flags, choices and files', async () => {
    const offers = await offersOf('zsh', ['-f', ZSH], TYPED);
    const offered = (line: string) => offers.get(line)?.map((each) => each.replace(/:.*/, ''));
    assert.deepEqual(
      offered('crd-controller '),
      COMMANDS.map(({ name }) => name),
    );
    assert.deepEqual(offers.get('crd-controller --kubeconf'), [
      '--kubeconfig=:Path to a kubeconfig file',
    ]);
    assert.deepEqual(offered('crd-controller -v 4 --context x se'), ['serve']);
    assert.deepEqual(offered('crd-controller --logging-format='), [
      '--logging-format=text',
      '--logging-format=json',
    ]);
    assert.deepEqual(offered('crd-controller --controllers=count,fo'), ['--controllers=count,foo']);
    assert.deepEqual(offered('crd-controller init --dir co'), ['con text', 'config']);
    assert.deepEqual(offered('crd-controller serve --leader'), []);
  });
});

test('has a summary for each command and flag, with the dashes that were typed', async () => {
  const commands = await answerTo(['']);
  for (const { name, summary, options } of COMMAND_OPTIONS) {
    assert.ok(commands.includes(`${name}\t${summary}\n`), name);
    const flags = await answerTo([name, '-kube']);
    assert.equal(/^-kubeconfig=\t\w/m.test(flags), 'kubeconfig' in options, name);
  }
});

for (const [operands, message] of [
  [[], 'completion requires the name of a shell: bash, zsh, fish'],
  [['tcsh'], 'unknown shell "tcsh": must be one of bash, zsh, fish'],
  [['bash', 'zsh'], 'completion takes one argument'],
] as const) {
  test(`rejects completion ${operands.join(' ')}`, async () => {
    await assert.rejects(completion(operands, PROGRAM, { print: () => {} }), {
      name: 'UsageError',
      message,
    });
  });
}
