import assert from 'node:assert/strict';
import { test } from 'node:test';
import { ownCommand } from '../../../../src/cli/common/own-command.ts';

test('a command in a message can be repeated: by npx, by the npm script, or by the name of the program', () => {
  const started = (event: string, script: string) => ({
    npm_lifecycle_event: event,
    npm_lifecycle_script: script,
  });
  const cases: [environment: object, words: string[], expected: string][] = [
    [{}, ['--help'], 'websites --help'],
    [started('npx', "'websites' init"), ['init', '--help'], 'npx websites init --help'],
    [started('npx', "'other'"), ['--help'], 'websites --help'],
    [
      started('controller', 'node src/main.ts'),
      ['check', '--help'],
      'npm run -s controller -- check --help',
    ],
    [
      started('manifests', 'node src/main.ts manifests'),
      ['manifests', '--help'],
      'npm run -s manifests -- --help',
    ],
    [started('manifests', 'node src/main.ts manifests'), ['check'], 'websites check'],
    [started('test', 'node --test src/main.ts'), ['--help'], 'websites --help'],
  ];
  for (const [environment, words, expected] of cases)
    assert.equal(
      ownCommand('websites', words, environment as NodeJS.ProcessEnv, '/project/src/main.ts'),
      expected,
    );
});
