import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { parseAllDocuments } from 'yaml';
import { chartFiles } from '../../src/cli/chart/chart.ts';
import { sourceOfProgram } from '../../src/cli/commands/generate-helm.ts';
import type { ProgramOptions } from '../../src/cli/program/program.ts';
import type { Manifest } from './roles.ts';

/** Returns the files of the chart of a program. */
export async function chartOf(program: ProgramOptions): Promise<ReadonlyMap<string, string>> {
  return chartFiles(await sourceOfProgram(program));
}

/** Writes the files of a chart to a temporary folder. */
export function writeChart(files: ReadonlyMap<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'chart-'));
  for (const [path, text] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  return folder;
}

/** Returns the objects of manifests by kind, namespace and name. */
export function objectsOf(texts: Iterable<string>): Map<string, Manifest> {
  const objects = [...texts]
    .flatMap((text) =>
      parseAllDocuments(text).map((document) => document.toJS() as Manifest | null),
    )
    .filter((object) => object !== null);
  return new Map(
    objects
      .map((object): [string, Manifest] => {
        const { kind, metadata } = object;
        return [`${kind}/${metadata.namespace ?? ''}/${metadata.name}`, object];
      })
      .toSorted(([left], [right]) => (left < right ? -1 : 1)),
  );
}
