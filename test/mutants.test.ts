import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { MUTANTS } from '../hack/mutants/mutants.ts';

const SRC = join(import.meta.dirname, '../src');

describe('the faults that hack/mutate.ts plants', () => {
  for (const [folder, mutants] of Object.entries(MUTANTS)) {
    it(`each of ${folder} has one place in the code as it is`, () => {
      const lost = mutants
        .filter(({ file, find }) => placesOf(find, join(SRC, folder, file)) !== 1)
        .map(({ file, fault, find }) => ({ file, fault, find }));
      assert.deepEqual(lost, []);
    });
  }
});

function placesOf(snippet: string, path: string): number {
  return readFileSync(path, 'utf8').split(snippet).length - 1;
}
