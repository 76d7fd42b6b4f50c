import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { placesOf } from '../hack/mutants/mutant.ts';
import { MUTANTS } from '../hack/mutants/mutants.ts';

const SRC = join(import.meta.dirname, '../src');

describe('the faults that hack/mutate.ts plants', () => {
  for (const [folder, mutants] of Object.entries(MUTANTS)) {
    it(`each of ${folder} has one place in the code as it is`, () => {
      const lost = mutants
        .filter((mutant) => {
          const source = readFileSync(join(SRC, folder, mutant.file), 'utf8');
          return placesOf(mutant, source) !== 1;
        })
        .map(({ file, fault, find }) => ({ file, fault, find }));
      assert.deepEqual(lost, []);
    });
  }
});
