import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { ContainerFiles } from '../../../../src/cluster/shell/container-files.ts';
import { runSession } from '../../../../src/cluster/shell/exec-session.ts';
import { FakeClock, settle } from '../../../../src/util/fake-clock.ts';

interface Session {
  readonly files?: ContainerFiles;
  /** @default no input */
  readonly stdin?: readonly (string | Uint8Array)[];
  readonly tty?: boolean;
  readonly gone?: AbortSignal;
  readonly clock?: FakeClock;
  /** Whether the input stays open. */
  readonly isOpen?: boolean;
}

/** Runs a command to its end. */
async function run(command: readonly string[], session: Session = {}) {
  const { files = new ContainerFiles(), tty = false, clock = new FakeClock() } = session;
  const { stdin, isOpen, gone = new AbortController().signal } = session;
  const output: Record<'stdout' | 'stderr', Uint8Array[]> = { stdout: [], stderr: [] };
  const code = await runSession(
    { command, environment: new Map([['HOSTNAME', 'web']]), files, tty, clock, gone },
    {
      stdin: stdin && inputOf(stdin, isOpen),
      stdout: async (bytes) => void output.stdout.push(bytes),
      stderr: async (bytes) => void output.stderr.push(bytes),
      signal: new AbortController().signal,
    },
  );
  const bytes = Buffer.concat(output.stdout);
  return { code, out: bytes.toString(), err: Buffer.concat(output.stderr).toString(), bytes };
}

async function* inputOf(parts: readonly (string | Uint8Array)[], isOpen = false) {
  for (const part of parts) {
    // The command handles a part before the next one arrives.
    await settle();
    yield typeof part === 'string' ? Buffer.from(part) : part;
  }
  if (isOpen) await new Promise(() => undefined);
}

const sh = (script: string, session?: Session) => run(['sh', '-c', script], session);

describe('A command in a container', () => {
  it('has output, errors, input and an exit code', async () => {
    for (const [script, stdin, out, err, code] of [
      ['echo a; echo b >&2; exit 3', undefined, 'a\n', 'b\n', 3],
      ['cat; hostname', ['one ', 'two\n'], 'one two\nweb\n', '', 0],
      ['cat', undefined, '', '', 0],
      ['echo $(cat)!', ['x\n'], 'x!\n', '', 0],
      ['cat none || echo no', undefined, 'no\n', 'cat: none: No such file or directory\n', 0],
      ['printenv HOSTNAME', undefined, 'web\n', '', 0],
    ] as const) {
      const result = await sh(script, stdin && { stdin });
      assert.deepEqual([result.out, result.err, result.code], [out, err, code], script);
    }
  });

  it('that is not simulated fails with one line, and the script continues', async () => {
    const unknown = await sh('curl x; echo $?');
    assert.equal(unknown.out, '127\n');
    assert.match(unknown.err, /^curl: not found in the simulated container, .*\n$/);
    for (const script of ['ls | wc', 'cat < x', 'f() { ls; }']) {
      const { err, code } = await sh(script);
      assert.match(err, /^sh: the simulated shell does not support .*\n$/, script);
      assert.equal(code, 2, script);
    }
  });

  it('formats the time as date does, in UTC', async () => {
    const clock = new FakeClock(Date.UTC(2024, 2, 5, 6, 7, 8, 9));
    for (const [args, out, err, code] of [
      ['', 'Tue Mar  5 06:07:08 UTC 2024\n', '', 0],
      ['-u +%FT%TZ', '2024-03-05T06:07:08Z\n', '', 0],
      ['-Iseconds', '2024-03-05T06:07:08+00:00\n', '', 0],
      ['-R', 'Tue, 05 Mar 2024 06:07:08 +0000\n', '', 0],
      ["'+%s %N %j %u %y %e%%'", '1709618828 009000000 065 2 24  5%\n', '', 0],
      ['foo', '', "date: invalid date 'foo'\n", 1],
    ] as const) {
      const result = await sh(`date ${args}`, { clock });
      assert.deepEqual([result.out, result.err, result.code], [out, err, code], args);
    }
    const unknown = await sh('date -d tomorrow', { clock });
    assert.deepEqual([unknown.out, unknown.code], ['', 2]);
  });

  it('waits, and ends with its container', async () => {
    const clock = new FakeClock();
    const waiting = sh('sleep 5; date +%s', { clock });
    await clock.advance(5000);
    assert.equal((await waiting).out, `${clock.now() / 1000}\n`);
    const gone = new AbortController();
    const ended = sh('sleep 1h', { gone: gone.signal });
    const reading = run(['cat'], { gone: gone.signal, stdin: [], isOpen: true });
    gone.abort();
    assert.deepEqual([(await ended).code, (await reading).code], [137, 137]);
  });

  it('cannot use more work than the program of a Pod', async () => {
    const { err, code } = await sh('seq 9999 > /tmp/x;'.repeat(20));
    assert.deepEqual([err.split('\n').length, code], [2, 137]);
    const much = Array.from({ length: 300 }, () => new Uint8Array(32_768));
    assert.equal((await run(['cat'], { stdin: much })).code, 137);
  });

  it('keeps files in the container', async () => {
    const files = new ContainerFiles(['/data']);
    const result = await sh(
      'cd data; echo a > x; echo b >> /data/x; mkdir d; touch d/y; ls; cat x; rm -f x none; test -f x; echo $?; test -d d; echo $?',
      { files },
    );
    assert.equal(result.out, 'd\nx\na\nb\n1\n0\n');
    assert.equal((await sh('echo x > /none/x', { files })).code, 1);
    assert.equal((await sh('[ -e /data/d/y ]', { files })).code, 0);
  });

  it('writes and reads tar archives, as kubectl cp does', async () => {
    const long = `d/${'n'.repeat(150)}`;
    const from = new ContainerFiles(['/data']);
    await sh(`mkdir /data/d; echo long > /data/${long}; echo a > /data/a`, { files: from });
    const { bytes, err } = await run(['tar', 'cf', '-', '/data'], { files: from });
    assert.equal(err, "tar: Removing leading `/' from member names\n");
    const to = new ContainerFiles();
    const parts = Array.from({ length: Math.ceil(bytes.length / 300) }, (_, at) =>
      bytes.subarray(at * 300, (at + 1) * 300),
    );
    const command = ['tar', '--no-same-owner', '-xmf', '-', '-C', '/tmp'];
    const { code } = await run(command, { files: to, stdin: parts, isOpen: true });
    assert.equal(code, 0);
    assert.equal((await sh(`cat /tmp/data/a /tmp/data/${long}`, { files: to })).out, 'a\nlong\n');
    for (const stdin of [[bytes.subarray(0, 700)], ['x'.repeat(600)]]) {
      assert.equal((await run(command, { files: to, stdin })).code, 2);
    }
  });
});

describe('A shell in a container', () => {
  it('runs lines as they arrive', async () => {
    const stdin = [
      'echo a\nif true; th',
      'en\necho "b\nc"; fi &&\n',
      'echo d\n',
      'ls | wc\ncd /tmp\npwd\nexit 4\n',
    ];
    const { out, err, code } = await run(['sh'], { stdin });
    assert.deepEqual([out, code], ['a\nb\nc\nd\n/tmp\n', 4]);
    assert.match(err, /^sh: the simulated shell does not support this syntax\n$/);
    assert.equal((await run(['sh'], { stdin: ['false'] })).code, 1);
  });

  it('has a terminal, with a prompt, an echo and keys to edit', async () => {
    const stdin = ['echo ax\u007fä\u007fb\r', 'no\u0003', 'ls /none\r', '\u0004'];
    const { out, err, code } = await run(['sh'], { stdin, tty: true, isOpen: true });
    const lines = [
      '/ # echo ax\b \bä\b \bb',
      'ab',
      '/ # no^C',
      '/ # ls /none',
      'ls: /none: No such file or directory',
      '/ # ',
    ];
    assert.deepEqual([out.split('\r\n'), err, code], [lines, '', 1]);
    const interrupted = await run(['cat'], { stdin: ['a\r', '\u0003'], tty: true, isOpen: true });
    assert.deepEqual([interrupted.out, interrupted.code], ['a\r\na\r\n^C\r\n', 130]);
  });
});
