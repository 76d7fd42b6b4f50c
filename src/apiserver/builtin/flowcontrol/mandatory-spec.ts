import type { JsonObject } from '../../../util/json-value.ts';
import { objectIn, textIn } from '../../../util/json-value.ts';
import { Memo } from '../../../util/memo.ts';
import { BOOTSTRAP } from '../../generated/bootstrap.ts';

const MANDATORY: ReadonlySet<string> = new Set(['exempt', 'catch-all']);

/** The specs by resource, which are those of the first objects of a server. */
const SPECS = new Memo(2, (plural: string) => {
  const prefix = `${plural} `;
  const objects = BOOTSTRAP.split('\n')
    .filter((line) => line.startsWith(prefix))
    .map((line) => JSON.parse(line.slice(prefix.length)) as JsonObject);
  return new Map(
    objects.map((object) => [
      textIn(objectIn(object, 'metadata'), 'name'),
      objectIn(object, 'spec'),
    ]),
  );
});

/** Returns the spec of a mandatory object, which no client may change; undefined for other objects. */
export function mandatorySpec(
  plural: 'flowschemas' | 'prioritylevelconfigurations',
  name: string,
): JsonObject | undefined {
  return MANDATORY.has(name) ? SPECS.get(plural).get(name) : undefined;
}
