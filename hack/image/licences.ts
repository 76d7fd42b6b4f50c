import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BundledPackage } from './packages.ts';

/**
 * Returns one section for each package with its name, version and licence text. A package without a licence
 * text is an error, because it must not be distributed.
 */
export function licences(root: string, packages: readonly BundledPackage[]): string {
  return packages.map((each) => section(root, each)).join(`\n${'-'.repeat(78)}\n\n`);
}

function section(root: string, { name, version, license, folder }: BundledPackage): string {
  const texts = globSync('{licen[cs]e,LICEN[CS]E,notice,NOTICE}*', { cwd: join(root, folder) })
    .toSorted()
    .map((file) => readFileSync(join(root, folder, file), 'utf8').trim());
  if (texts.length === 0) throw new Error(`${folder} has no text of its licence (${license})`);
  return `${[`${name} ${version} (${license})`, ...texts].join('\n\n')}\n`;
}
