/** The changelog in the format of https://keepachangelog.com, with the products of this repository between version and kind of change. */

export interface Section {
  /** `Unreleased` or a version. */
  readonly version: string;
  /** Date of the release, `2026-11-27`. */
  readonly date: string | undefined;
  /** What follows the heading. */
  readonly text: string;
}

const HEADING = /^## \[(?:(Unreleased)\]|(\d+\.\d+\.\d+)\] - (\d{4}-\d\d-\d\d))$/;
const KINDS = ['Added', 'Changed', 'Deprecated', 'Removed', 'Fixed', 'Security'];

/**
 * Returns the sections, the newest first.
 * @throws {Error} if a heading does not have the format, or a version is out of order
 */
export function changelogSections(changelog: string): readonly Section[] {
  const parts = changelog.split(/^(?=## )/m).filter((part) => part.startsWith('## '));
  const sections = parts.map((part): Section => {
    const [heading = '', ...lines] = part.split('\n');
    const [, unreleased, version = unreleased, date] = HEADING.exec(heading) ?? [];
    if (version === undefined) {
      throw new Error(`"${heading}" is not "## [Unreleased]" or "## [1.2.3] - 2026-11-27"`);
    }
    for (const [, kind = ''] of part.matchAll(/^#### (.*)$/gm)) {
      if (!KINDS.includes(kind)) throw new Error(`"#### ${kind}" is none of ${KINDS.join(', ')}`);
    }
    return { version, date, text: lines.join('\n').trim() };
  });
  for (const [index, { version }] of sections.entries()) {
    const next = sections[index + 1]?.version;
    if (next !== undefined && version !== UNRELEASED && compare(version, next) <= 0) {
      throw new Error(`[${version}] is above [${next}]; the newest version comes first`);
    }
    if (index > 0 && version === UNRELEASED) throw new Error(`[${UNRELEASED}] is not the first`);
  }
  return sections;
}

/** Changes after the last release. */
export const UNRELEASED = 'Unreleased';

function compare(a: string, b: string): number {
  return a.localeCompare(b, 'en', { numeric: true });
}
